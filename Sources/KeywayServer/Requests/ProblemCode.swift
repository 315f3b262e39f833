import HTTPServer
package import HTTPTypes

/// The codes of section 6 of the specification. Each has a page under `/v1/problems/`.
package enum ProblemCode: String, CaseIterable, Sendable {
  case malformedJSON = "malformed-json"
  case malformedKeyPath = "malformed-key-path"
  case malformedQuery = "malformed-query"
  case malformedRequest = "malformed-request"
  case unauthenticated
  case forbidden
  case nodeRefused = "node-refused"
  case unknownEntity = "unknown-entity"
  case unknownObject = "unknown-object"
  case undefinedKey = "undefined-key"
  case unknownStream = "unknown-stream"
  case unknownCell = "unknown-cell"
  case notFound = "not-found"
  case methodNotAllowed = "method-not-allowed"
  case notAcceptable = "not-acceptable"
  case nullInKeyPath = "null-in-key-path"
  case deleteDenied = "delete-denied"
  case alreadyExists = "already-exists"
  case idempotencyKeyInUse = "idempotency-key-in-use"
  case otherHistory = "other-history"
  case pageExpired = "page-expired"
  case unusableCursor = "unusable-cursor"
  case staleRevision = "stale-revision"
  case rangeNotSatisfiable = "range-not-satisfiable"
  case contentTooLarge = "content-too-large"
  case unsupportedMediaType = "unsupported-media-type"
  case misdirectedRequest = "misdirected-request"
  case uriTooLong = "uri-too-long"
  case headersTooLarge = "headers-too-large"
  case invalidValue = "invalid-value"
  case nullNotAllowed = "null-not-allowed"
  case readOnlyKey = "read-only-key"
  case wrongEntity = "wrong-entity"
  case unbalancedBracket = "unbalanced-bracket"
  case notACollection = "not-a-collection"
  case indexOutOfRange = "index-out-of-range"
  case unobservableKeyPath = "unobservable-key-path"
  case patchTestFailed = "patch-test-failed"
  case malformedFilter = "malformed-filter"
  case idempotencyKeyReused = "idempotency-key-reused"
  case tooManyCells = "too-many-cells"
  case tooManyKeyPaths = "too-many-key-paths"
  case tooManyOperations = "too-many-operations"
  case tooManyObjects = "too-many-objects"
  case tooManyBytes = "too-many-bytes"
  case tooManySteps = "too-many-steps"
  case tooManyLeasesOfClient = "too-many-leases-of-client"
  case tooManyRequests = "too-many-requests"
  case tooManyLeases = "too-many-leases"
  case tooManyStreams = "too-many-streams"
  case tooManyQueries = "too-many-queries"
  case overloaded
  case behind
  case leaderUnreachable = "leader-unreachable"
  case draining
  case storeUnavailable = "store-unavailable"
  case internalError = "internal-error"
  case badGateway = "bad-gateway"
  case notImplemented = "not-implemented"
  case unsupportedVersion = "http-version-not-supported"

  /// The status of a response with this problem (RFC 9110 §15, RFC 6585).
  package var status: HTTPResponse.Status {
    switch self {
    case .malformedJSON, .malformedKeyPath, .malformedFilter, .malformedQuery, .malformedRequest: .badRequest
    case .unauthenticated: .unauthorized
    case .forbidden, .nodeRefused: .forbidden
    case .unknownEntity, .unknownObject, .undefinedKey, .unknownStream, .unknownCell, .notFound: .notFound
    case .methodNotAllowed: .methodNotAllowed
    case .notAcceptable: .notAcceptable
    case .nullInKeyPath, .deleteDenied, .alreadyExists, .patchTestFailed, .idempotencyKeyInUse, .otherHistory:
      .conflict
    case .pageExpired, .unusableCursor: .gone
    case .staleRevision: .preconditionFailed
    case .contentTooLarge: .contentTooLarge
    case .rangeNotSatisfiable: .rangeNotSatisfiable
    case .unsupportedMediaType: .unsupportedMediaType
    case .misdirectedRequest: .misdirectedRequest
    case .uriTooLong: .uriTooLong
    case .headersTooLarge: .requestHeaderFieldsTooLarge
    case .invalidValue, .nullNotAllowed, .readOnlyKey, .wrongEntity, .unbalancedBracket, .notACollection,
      .indexOutOfRange, .unobservableKeyPath, .idempotencyKeyReused:
      .unprocessableContent
    case .tooManyCells, .tooManyKeyPaths, .tooManyOperations, .tooManyObjects, .tooManyBytes, .tooManySteps,
      .tooManyLeasesOfClient, .tooManyRequests:
      .tooManyRequests
    case .tooManyLeases, .tooManyStreams, .tooManyQueries, .overloaded, .behind, .leaderUnreachable, .draining,
      .storeUnavailable:
      .serviceUnavailable
    case .internalError: .internalServerError
    case .badGateway: .badGateway
    case .notImplemented: .notImplemented
    case .unsupportedVersion: .httpVersionNotSupported
    }
  }

  /// The condition to report to the operator when this problem occurs. Nil if it concerns a client only, or is reported
  /// elsewhere.
  var condition: Condition? {
    switch self {
    case .tooManyStreams: .streams
    case .tooManyQueries: .queries
    case .tooManyRequests: .rate
    case .overloaded: .overload
    default: nil
    }
  }

  /// True if the problem may depend on the requester's access: something does not exist, or this requester may not use
  /// it.
  var dependsOnAccess: Bool { self == .forbidden || self == .unknownObject || self == .unknownEntity }

  /// The meaning of the problem, in one sentence. It is the `title` too (RFC 9457 §3.1.3).
  package var explanation: String {
    switch self {
    case .malformedJSON: "The body is not a single JSON value, repeats a member of an object, or is not a JSON Patch."
    case .malformedKeyPath: "The key path does not follow the grammar: keys joined by dots, at most one operator."
    case .malformedQuery: "A query parameter or a header is unknown, repeated, or malformed."
    case .malformedRequest: "The request is not well-formed HTTP, or has two session cookies."
    case .unauthenticated: "The request has no valid token, and the resource requires one."
    case .forbidden: "The token that was sent does not allow this."
    case .nodeRefused: "The request has a field that is accepted from nodes only, and does not come from a node."
    case .unknownEntity: "The schema has no entity of this name."
    case .unknownObject: "The object does not exist, or no longer exists."
    case .undefinedKey: "The entity has no such key, or the path continues after a value that has no keys."
    case .unknownStream: "No stream of this name is open."
    case .unknownCell: "The stream has no cell of this name."
    case .notFound: "Nothing is served under this path."
    case .methodNotAllowed: "The resource does not support this method; the Allow header lists the supported ones."
    case .notAcceptable: "The resource is not available in any form that the Accept header allows."
    case .nullInKeyPath: "A key path cannot be set through an object that does not exist."
    case .deleteDenied: "A delete rule, or a reference that must not be null, forbids the deletion."
    case .alreadyExists: "An object with this reference already exists."
    case .idempotencyKeyInUse: "A request with this Idempotency-Key is still in progress; try again."
    case .otherHistory: "The history of the node differs from the history here; it has to start again from a copy."
    case .pageExpired: "The state that the pages of this fetch show is no longer kept; fetch again."
    case .unusableCursor:
      "The journal cannot resume from this cursor: it is too old, of another store, or malformed. Read all objects."
    case .staleRevision: "The request depends on a state that has changed, or names another version."
    case .rangeNotSatisfiable: "The range is outside the file; the Content-Range header has the length of the file."
    case .contentTooLarge:
      "The body is larger than request.bodyBytes, or, with a key, than idempotency.bytes; or the write is larger "
        + "than object.bytes or transaction.bytes allow."
    case .unsupportedMediaType: "A body requires Content-Type: application/json; with curl, use curl --json."
    case .misdirectedRequest: "The Host is not one of this server's names; see the setting names."
    case .uriTooLong: "The request line alone is larger than request.headerBytes."
    case .headersTooLarge: "The request headers are larger than request.headerBytes."
    case .invalidValue: "The value does not have the key's type, violates a constraint, or names what does not exist."
    case .nullNotAllowed: "The key must have a value."
    case .readOnlyKey: "The key is computed and cannot be set."
    case .wrongEntity: "The reference names an object of another entity than the relationship requires."
    case .unbalancedBracket: "A willChange has no didChange, or vice versa."
    case .notACollection: "The key path is not a to-many (unordered for a set operation), or goes through one."
    case .indexOutOfRange: "An index does not exist, is named twice, or belongs to a collection without order."
    case .unobservableKeyPath: "The path continues after a to-many without an operator: it can be read, not observed."
    case .patchTestFailed: "A test of the JSON Patch does not hold."
    case .malformedFilter: "The filter is not a CEL condition over the entity's keys, or costs too much."
    case .idempotencyKeyReused: "Another request had this Idempotency-Key; use a new key for a new request."
    case .tooManyCells: "A stream has at most streams.cells cells."
    case .tooManyKeyPaths: "An observation names at most streams.keyPaths key paths."
    case .tooManyOperations: "A transaction exceeds transactions.operations, or a JSON Patch exceeds patch.operations."
    case .tooManyObjects: "The response would exceed answer.objects, by expand or by a to-many after another."
    case .tooManyBytes:
      "The response would exceed answer.bytes, or the first event of a stream streams.eventBytes; request less."
    case .tooManySteps:
      "A request may take request.steps steps to read: request fewer objects, or filter by an indexed key. A "
        + "transaction may take transaction.steps: split it into several."
    case .tooManyRequests: "The client sends more requests than access.requestsPerSecond allows; try again."
    case .tooManyLeases, .tooManyLeasesOfClient: "The limit leases.maximum or leases.perClient is reached."
    case .tooManyStreams:
      "The limit of open streams is reached: streams.maximum, or for a client streams.perAddress or access.streams."
    case .tooManyQueries: "The server, or the client, has reached its limit of live queries or of their rows."
    case .behind: "The server has not reached the state that Keyway-Cursor names."
    case .leaderUnreachable: "The node that accepts writes does not respond; see the detail for the write's outcome."
    case .overloaded: "The server has more to do than its limits allow; try again."
    case .draining: "The server is about to stop; try again."
    case .storeUnavailable: "The store is not ready, or does not accept writes now; see the detail. Try again."
    case .internalError: "An internal error occurred; nothing was changed."
    case .badGateway: "Another node, which has the stream or page that the request names, sent an invalid response."
    case .notImplemented: "Only a Content-Length and the chunked transfer coding are supported for a body."
    case .unsupportedVersion: "Only HTTP/1.1 and HTTP/1.0 are supported."
    }
  }
}
