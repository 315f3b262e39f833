package import HTTPServer
package import HTTPTypes
import KeyValueModel

/// One row of the route table: a resource, its methods, and their handlers.
package final class Route: Sendable {
  /// Handles a request for a method of a resource. It throws a problem, of which `RequestRouter` makes the response.
  package typealias Handler =
    @Sendable (_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse

  /// The variable parts of paths, named as in patterns.
  package enum Parameter: String, Sendable {
    case entity = "Entity"
    case id, keyPath, stream, cell, code, sub, name, file
  }

  /// The audience of a resource on a server with keys.
  package enum Audience: Sendable {
    /// Everyone.
    case everybody
    /// Everyone, whatever token was sent: a page must be served even if the cookie has expired.
    case visitors
    /// Admins, or everyone with `access.openMetrics`.
    case operators
    /// Admins.
    case admins
    /// Nodes that follow this server, and admins.
    case nodes
    /// Everyone with a token.
    case identities
    /// Everyone whom the rules permit.
    case objects
    /// Everyone with a token, and everyone else if the rules let them read something. A named stream and its cells are
    /// for admins and for the owner of the stream.
    case streams

    /// True if the resource requires a token.
    var wantsToken: Bool {
      switch self {
      case .everybody, .visitors, .objects: false
      case .operators, .admins, .nodes, .identities, .streams: true
      }
    }

    /// True if the identity of a node gets a response too.
    var hasNodes: Bool {
      switch self {
      case .everybody, .visitors, .nodes: true
      case .operators, .admins, .identities, .objects, .streams: false
      }
    }
  }

  private enum Segment {
    case literal(String)
    case parameter(Parameter)
  }

  /// The path with its parameters in braces. Metrics and logs name the resource by it, never by a path that was sent.
  let pattern: String
  /// True if the resource is served even while the store reads its journal and while the server drains.
  package let isAlwaysServed: Bool
  /// True if a client may request it without a rate limit, since monitoring must always get a response.
  let isUnlimited: Bool
  /// The forms of `GET`, the preferred one first. Empty if `Accept` is ignored.
  let forms: [Negotiation.Form]
  /// The action of `GET` for a client that accepts an event stream, or nil if the resource has no stream.
  let stream: Action?
  /// Returns true if the response to a method depends on the `Accept` of the request, which chooses between the forms.
  func isNegotiated(_ method: HTTPRequest.Method) -> Bool {
    forms.count > 1 && (method == .get || method == .head)
  }
  /// The value of an `Allow` header (RFC 9110 §10.2.1).
  let allow: String
  /// The value of an `Accept-Patch` header (RFC 5789 §3.1), or nil without `PATCH`.
  let acceptPatch: String?
  /// The audience.
  package let audience: Audience
  /// The methods, in the order of `Allow`.
  let methods: [HTTPRequest.Method]
  /// True if the resource changes the store, so that a follower forwards its writes.
  package let isForwarded: Bool

  /// Returns true if a method makes a commit.
  package func isCommitted(by method: HTTPRequest.Method) -> Bool {
    isForwarded && audience == .objects && method != .get && method != .head
  }

  /// True if the body has operations on several objects.
  package var isTransaction: Bool { isCommitted(by: .post) && position(of: .entity) == nil }

  /// The counts of answered requests.
  let counts: RequestCounts

  private let segments: [Segment]
  /// The action of a method. A closure as an element of a list is converted, with an allocation, on each access. In a
  /// struct it is not.
  package struct Action: Sendable {
    /// Handles a request.
    package let handle: Handler
  }

  private let handlers: [(method: HTTPRequest.Method, action: Action)]
  private let parameterNames: [(method: HTTPRequest.Method, plain: [String], streamed: [String])]

  /// Creates a route. Its path and methods are also in the description of the API, `openapi.yaml`, which names the
  /// query parameters of the methods.
  ///
  /// - Parameters:
  ///   - pattern: The path. `{name}` stands for one segment, where `name` is the name of a `Parameter`.
  ///   - handlers: The handlers of its methods. `HEAD` comes with `GET`, and `OPTIONS` with every resource.
  ///   - stream: The handler of `GET` for a client that accepts an event stream, or nil.
  ///   - form: The form of `GET` otherwise, or nil if `Accept` is ignored.
  ///   - patchTypes: The media types that `PATCH` accepts.
  ///   - isAlwaysServed: True if the resource is served even while the store reads its journal and while the server
  ///     drains.
  ///   - isUnlimited: True if `access.requestsPerSecond` does not apply.
  ///   - audience: The audience.
  ///   - isForwarded: True if the resource changes the store.
  package init(
    _ pattern: String, _ handlers: KeyValuePairs<HTTPRequest.Method, Handler>, stream: Handler? = nil,
    form: Negotiation.Form? = .json, patchTypes: [String]? = nil, isAlwaysServed: Bool = false,
    isUnlimited: Bool = false, audience: Audience = .everybody, isForwarded: Bool = false
  ) {
    self.pattern = pattern
    self.handlers = handlers.map { ($0.key, Action(handle: $0.value)) }
    self.stream = stream.map(Action.init)
    self.isAlwaysServed = isAlwaysServed
    self.isUnlimited = isUnlimited
    self.audience = audience
    self.isForwarded = isForwarded
    forms = (form.map { [$0] } ?? []) + (stream == nil ? [] : [.stream])
    let described = OpenAPIDocument.parameterNames(of: pattern)
    precondition(
      Set(handlers.map(\.key)) == Set(described.map(\.method)), "'\(pattern)' differs from its description")
    parameterNames = described
    acceptPatch = patchTypes?.joined(separator: ", ")
    methods = handlers.flatMap { $0.key == .get ? [.get, .head] : [$0.key] } + [.options]
    allow = methods.map(\.rawValue).joined(separator: ", ")
    counts = RequestCounts(route: pattern)
    segments = pattern.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { text in
      guard text.hasPrefix("{") else { return .literal(String(text)) }
      guard let parameter = Parameter(rawValue: String(text.dropFirst().dropLast())) else {
        preconditionFailure("'\(text)' in '\(pattern)' is not a parameter")
      }
      return .parameter(parameter)
    }
  }

  /// The number of segments of its paths.
  var segmentCount: Int { segments.count }

  /// Returns true if a path belongs to this resource. It must have `segmentCount` segments.
  func matches(_ path: [String]) -> Bool {
    for (index, segment) in segments.enumerated() {
      if case .literal(let text) = segment, path[index] != text { return false }
    }
    return true
  }

  /// The variable parts of its paths, in order.
  var parameters: [Parameter] {
    segments.compactMap { if case .parameter(let parameter) = $0 { parameter } else { nil } }
  }

  /// Returns the names of the query parameters of a method, or of its stream.
  package func parameterNames(_ method: HTTPRequest.Method, _ isStream: Bool) -> [String] {
    let method = method == .head ? .get : method
    guard let names = parameterNames.first(where: { $0.method == method }) else { return [] }
    return isStream ? names.streamed : names.plain
  }

  /// Returns the index of the segment that is a parameter, or nil if the pattern does not have it.
  package func position(of parameter: Parameter) -> Int? {
    segments.firstIndex { if case .parameter(parameter) = $0 { true } else { false } }
  }

  /// Returns the action of a method, that of `GET` for `HEAD`. Nil if the resource does not have the method.
  func action(of method: HTTPRequest.Method) -> Action? {
    let method = method == .head ? .get : method
    return handlers.first { $0.method == method }?.action
  }
}

/// The context of a request: all that is known of it besides the request itself, once the requester and the route are
/// known.
package struct RequestContext: Sendable {
  /// The requested resource.
  package let route: Route
  /// The action of the method, or the one that opens the stream.
  package let action: Route.Action
  /// True if the answer is an event stream.
  package let isStream: Bool
  /// The path and the query parameters.
  package let target: Target
  /// The client that sent the request.
  package let requester: Requester
  /// The method of the request.
  let method: HTTPRequest.Method
  /// The idempotent request of a `POST` that writes with an `Idempotency-Key`, or nil without one.
  var idempotency: IdempotentRequest?
  /// The context of other nodes in a write, or nil if they take no part, as on a single server.
  package var nodes: (any NodesContext)?

  /// The viewer whose read rules apply, or nil if none do.
  var viewer: Viewer? { requester.viewer }

  /// The key paths of `{keyPath}`, separated by commas.
  var keyPaths: [String] {
    self[.keyPath].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// Returns a variable part of the path, percent-decoded. The route's pattern must have it.
  package subscript(parameter: Route.Parameter) -> String {
    guard let position = route.position(of: parameter) else {
      preconditionFailure("'\(route.pattern)' has no {\(parameter.rawValue)}")
    }
    return target.segments[position]
  }

  /// Throws `malformed-query` for a query parameter that the resource does not have.
  package func checkParameters() throws(Problem) {
    guard target.hasQuery else { return }
    try target.allowOnly(route.parameterNames(method, isStream))
  }

  /// Returns the object of `{Entity}` and `{id}`. Throws `unknown-object` for an id that no object can have.
  func reference(in schema: Schema) throws(Problem) -> Reference {
    let (entity, id) = (self[.entity], self[.id])
    guard let reference = Reference(entity: entity, id: id) else {
      _ = try Problem.translating(try schema.requireEntity(entity))
      throw Problem(.unknownObject, Self.idRule(id))
    }
    return reference
  }

  /// Returns the explanation why a text is not an id.
  static func idRule(_ id: String) -> String { "'\(id)' is not an id: an id has 1 to 128 of A-Z a-z 0-9 . _ ~ -" }
}
