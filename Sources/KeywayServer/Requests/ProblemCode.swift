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
    case .malformedJSON: "The body is not one JSON value, names a member of an object twice, or is no JSON Patch."
    case .malformedKeyPath: "The key path does not follow the grammar: keys joined by dots, at most one operator."
    case .malformedQuery: "A query parameter or a header is unknown, double, or not of its form."
    case .malformedRequest: "The request is not well-formed HTTP, or has two session cookies."
    case .unauthenticated: "There is no token that is good, and without one this is not there."
    case .forbidden: "The token that was sent does not allow this."
    case .nodeRefused: "The request has a field that is accepted from nodes only, and does not come from one."
    case .unknownEntity: "The schema has no entity of this name."
    case .unknownObject: "There is no object of this reference, or no longer."
    case .undefinedKey: "The entity has no such key, or the path goes on behind a value that has no keys."
    case .unknownStream: "No stream of this name is open."
    case .unknownCell: "The stream has no cell of this name."
    case .notFound: "Nothing is served under this path."
    case .methodNotAllowed: "The resource does not have this method; the Allow header names those it has."
    case .notAcceptable: "The resource is not available in any form that the Accept header allows."
    case .nullInKeyPath: "A key path cannot be set through an object that is not there."
    case .deleteDenied: "A delete rule, or a reference that must not be null, forbids the deletion."
    case .alreadyExists: "There is an object of this reference already."
    case .idempotencyKeyInUse: "A request with this Idempotency-Key is still under way; try again."
    case .otherHistory: "The node that asks has another history than this one; it has to begin anew with a copy."
    case .pageExpired: "The state that the pages of this fetch show is no longer kept; fetch again."
    case .unusableCursor:
      "The journal cannot go on from this cursor: too old, of another store, or malformed. Read all objects."
    case .staleRevision: "What the request depends on has changed, or is another version than it names."
    case .rangeNotSatisfiable: "The file has no bytes of the range; the Content-Range header has its length."
    case .contentTooLarge:
      "The body is larger than request.bodyBytes, or, with a key, than idempotency.bytes; or what it writes is larger "
        + "than object.bytes or transaction.bytes allow."
    case .unsupportedMediaType: "A body wants Content-Type: application/json; with curl, use curl --json."
    case .misdirectedRequest: "The Host is none of this server's names; see the setting names."
    case .uriTooLong: "The request line alone is larger than request.headerBytes."
    case .headersTooLarge: "The request headers are larger than request.headerBytes."
    case .invalidValue: "The value does not have the key's type, breaks a constraint, or names what is not there."
    case .nullNotAllowed: "The key must have a value."
    case .readOnlyKey: "The key is computed and cannot be set."
    case .wrongEntity: "The reference names an object of another entity than the relationship wants."
    case .unbalancedBracket: "A willChange has no didChange, or the other way round."
    case .notACollection: "The operation wants a to-many, a set operation one without order; none is written through."
    case .indexOutOfRange: "An index set names a place that is not there, one twice, or places of what has no order."
    case .unobservableKeyPath: "The path goes on behind a to-many without an operator: it can be read, not observed."
    case .patchTestFailed: "A test of the JSON Patch does not hold."
    case .malformedFilter: "The filter is no CEL expression over the entity's keys, or no condition, or costs too much."
    case .idempotencyKeyReused: "Another request had this Idempotency-Key; a new request wants a new one."
    case .tooManyCells: "A stream has at most streams.cells cells."
    case .tooManyKeyPaths: "An observation names at most streams.keyPaths key paths."
    case .tooManyOperations: "A transaction has at most transactions.operations, a JSON Patch patch.operations of them."
    case .tooManyObjects: "An answer has at most answer.objects objects by expand, or of a to-many behind another."
    case .tooManyBytes:
      "An answer has at most answer.bytes bytes, the first event of a stream streams.eventBytes; ask for less."
    case .tooManySteps:
      "A request takes at most request.steps steps to read: ask for fewer objects, or filter by an indexed key. A "
        + "transaction takes at most transaction.steps: do it in several."
    case .tooManyRequests: "A client asks more often than access.requestsPerSecond allows; try again."
    case .tooManyLeases, .tooManyLeasesOfClient: "There are as many leases as leases.maximum or leases.perClient allow."
    case .tooManyStreams:
      "As many streams are open as streams.maximum, or streams.perAddress or access.streams for a client, allows."
    case .tooManyQueries: "There are as many live queries, or rows of them, as the server, or a client, may have."
    case .behind: "The server has not come to the state that Keyway-Cursor names."
    case .leaderUnreachable: "The node that takes writes gives no answer; the detail says what of the write."
    case .overloaded: "The server has more to do than its limits allow; try again."
    case .draining: "The server is about to stop; try again."
    case .storeUnavailable: "The store is not ready yet, or takes no writes now; the detail says why. Try again."
    case .internalError: "The server made a mistake; nothing was changed."
    case .badGateway: "Another node, which made what the request names, does not answer as a node does."
    case .notImplemented: "A body comes with a Content-Length or in chunks; there is no other transfer coding."
    case .unsupportedVersion: "The server speaks HTTP/1.1 and HTTP/1.0."
    }
  }
}
