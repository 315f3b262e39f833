package import HTTPServer
package import HTTPTypes
import KeyValueModel

/// One row of the route table: a resource, its methods, and what each of them does.
package final class Route: Sendable {
  /// What a method of a resource does with a request. It throws what is wrong with the request; `RequestRouter` makes
  /// the response of that.
  package typealias Handler =
    @Sendable (_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse

  /// The variable parts of paths, named as in the patterns.
  package enum Parameter: String, Sendable {
    case entity = "Entity"
    case id, keyPath, stream, cell, code, sub, file
  }

  /// Whom a resource is for, on a server with keys.
  package enum Audience: Sendable {
    /// Everybody.
    case everybody
    /// Everybody, whatever token was sent: a page must come also where the cookie has expired.
    case visitors
    /// Admins; everybody where `access.openMetrics` says so.
    case operators
    /// Admins.
    case admins
    /// Nodes that follow this server, and admins.
    case nodes
    /// All who have a token.
    case identities
    /// Those whom the rules let.
    case objects
    /// All who have a token, and all others where the rules let them read something; a stream that is named, and its
    /// cells, are for those whom it was opened for, and admins.
    case streams

    /// Whether nothing is there without a token.
    var wantsToken: Bool {
      switch self {
      case .everybody, .visitors, .objects: false
      case .operators, .admins, .nodes, .identities, .streams: true
      }
    }

    /// True if the identity of a node gets an answer, as everybody does.
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

  /// The path with its parameters in braces; metrics and logs name the resource by it, never by a path that was sent.
  let pattern: String
  /// Whether it is served while the store reads its journal and while the server drains.
  package let isAlwaysServed: Bool
  /// Whether a client may ask for it as often as it likes: what looks after the server must always hear from it.
  let isUnlimited: Bool
  /// The forms that `GET` is available in, the preferred one first; empty where `Accept` is not looked at.
  let forms: [Negotiation.Form]
  /// What `GET` does for a client that accepts an event stream; nil where the resource has none.
  let stream: Action?
  /// Whether the answer to a method depends on the `Accept` of the request: it chooses between the forms.
  func isNegotiated(_ method: HTTPRequest.Method) -> Bool {
    forms.count > 1 && (method == .get || method == .head)
  }
  /// The value of an `Allow` header (RFC 9110 §10.2.1).
  let allow: String
  /// The value of an `Accept-Patch` header (RFC 5789 §3.1); nil where there is no `PATCH`.
  let acceptPatch: String?
  /// Whom it is for.
  package let audience: Audience
  /// The methods, in the order of `Allow`.
  let methods: [HTTPRequest.Method]
  /// Whether what it changes is the store's, so that a node that follows another passes it on.
  package let isForwarded: Bool

  /// Whether a method changes something by a commit.
  package func isCommitted(by method: HTTPRequest.Method) -> Bool {
    isForwarded && audience == .objects && method != .get && method != .head
  }

  /// Whether its body has operations on several objects.
  package var isTransaction: Bool { isCommitted(by: .post) && position(of: .entity) == nil }

  /// How many requests were answered.
  let counts: RequestCounts

  private let segments: [Segment]
  /// What a method does. A closure that is an element of a list is converted, with an allocation, whenever it is looked
  /// at; in a struct it stays what it is.
  package struct Action: Sendable {
    /// Answers a request.
    package let handle: Handler
  }

  private let handlers: [(method: HTTPRequest.Method, action: Action)]
  private let parameterNames: [(method: HTTPRequest.Method, plain: [String], streamed: [String])]

  /// A resource, whose path and methods are also in the description of the API, `openapi.yaml`. The description says
  /// which query parameters the methods take.
  ///
  /// - Parameters:
  ///   - pattern: The path; `{name}` stands for one segment, `name` being that of a `Parameter`.
  ///   - handlers: What its methods do. `HEAD` comes with `GET`, and `OPTIONS` with every resource.
  ///   - stream: What `GET` does for a client that accepts an event stream; nil where there is none.
  ///   - form: The form of what `GET` gives otherwise; nil where `Accept` is not looked at.
  ///   - patchTypes: The media types that `PATCH` takes.
  ///   - isAlwaysServed: Whether it is served while the store reads its journal and while the server drains.
  ///   - isUnlimited: Whether `access.requestsPerSecond` is not for it.
  ///   - audience: Whom it is for.
  ///   - isForwarded: Whether what it changes is the store's.
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
      Set(handlers.map(\.key)) == Set(described.map(\.method)), "'\(pattern)' is described otherwise than it is")
    parameterNames = described
    acceptPatch = patchTypes?.joined(separator: ", ")
    methods = handlers.flatMap { $0.key == .get ? [.get, .head] : [$0.key] } + [.options]
    allow = methods.map(\.rawValue).joined(separator: ", ")
    counts = RequestCounts(route: pattern)
    segments = pattern.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { text in
      guard text.hasPrefix("{") else { return .literal(String(text)) }
      guard let parameter = Parameter(rawValue: String(text.dropFirst().dropLast())) else {
        preconditionFailure("'\(text)' in '\(pattern)' is no parameter")
      }
      return .parameter(parameter)
    }
  }

  /// How many segments its paths have.
  var segmentCount: Int { segments.count }

  /// Whether a path is one of this resource's; it must have `segmentCount` segments.
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

  /// The names of the query parameters that a method takes, or the stream of it.
  package func parameterNames(_ method: HTTPRequest.Method, _ isStream: Bool) -> [String] {
    let method = method == .head ? .get : method
    guard let names = parameterNames.first(where: { $0.method == method }) else { return [] }
    return isStream ? names.streamed : names.plain
  }

  /// Which segment of a path a parameter is; nil where the pattern does not have it.
  package func position(of parameter: Parameter) -> Int? {
    segments.firstIndex { if case .parameter(parameter) = $0 { true } else { false } }
  }

  /// What answers a method, `HEAD` as `GET`; nil where the resource does not have it.
  func action(of method: HTTPRequest.Method) -> Action? {
    let method = method == .head ? .get : method
    return handlers.first { $0.method == method }?.action
  }
}

/// What is known of a request besides the request itself, once its sender and its purpose are found out.
package struct RequestContext: Sendable {
  /// The resource that is asked for.
  package let route: Route
  /// The action of the method, or the one that opens the stream.
  package let action: Route.Action
  /// True if the answer is an event stream.
  package let isStream: Bool
  /// The path and the query parameters.
  package let target: Target
  /// The client that asks.
  package let requester: Requester
  /// The names of the query parameters that the action takes.
  let parameters: [String]
  /// What an `Idempotency-Key` makes of a `POST` that writes; nil without one.
  var idempotency: IdempotentRequest?
  /// The part of other nodes in a write; nil if they have none, as on a server on its own.
  package var nodes: (any NodesContext)?

  /// What the rules let the requester read; nil where they are asked no rule.
  var viewer: Viewer? { requester.viewer }

  /// The key paths of `{keyPath}`, which commas part.
  var keyPaths: [String] {
    self[.keyPath].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// A variable part of the path, percent-decoded. The route's pattern must have it.
  package subscript(parameter: Route.Parameter) -> String {
    guard let position = route.position(of: parameter) else {
      preconditionFailure("'\(route.pattern)' has no {\(parameter.rawValue)}")
    }
    return target.segments[position]
  }

  /// Throws `malformed-query` for a query parameter that the resource does not take.
  package func checkParameters() throws(Problem) { try target.allowOnly(parameters) }

  /// The object of `{Entity}` and `{id}`. Throws `unknown-object` for an id that no object can have.
  func reference(in schema: Schema) throws(Problem) -> Reference {
    let (entity, id) = (self[.entity], self[.id])
    guard let reference = Reference(entity: entity, id: id) else {
      _ = try Problem.translating(try schema.requireEntity(entity))
      throw Problem(.unknownObject, Self.idRule(id))
    }
    return reference
  }

  /// Why a text is no id.
  static func idRule(_ id: String) -> String { "'\(id)' is no id: those have 1 to 128 of A-Z a-z 0-9 . _ ~ -" }
}

/// Content negotiation (RFC 9110 §12.5.1) between the ways to read a resource.
package enum Negotiation {
  /// The forms of a resource: JSON as a whole or in lines, or a stream that keeps it up to date.
  package enum Form: String, Sendable {
    case json = "application/json"
    case lines = "application/x-ndjson"
    case stream = "text/event-stream"

    /// Its media type.
    package var type: String { rawValue }

    /// The range of all types that begin like it.
    fileprivate var family: String { self == .stream ? "text/*" : "application/*" }
  }

  /// How a client wants to read a resource, or `not-acceptable`.
  static func form(of request: borrowing Request, available: [Form]) throws(Problem) -> Form {
    if let form = form(request.header(.accept), available: available) { return form }
    let types = available.map(\.type).joined(separator: ", ")
    throw Problem(.notAcceptable, "this resource is available as \(types)").with(.accept, types)
  }

  /// The form that an `Accept` header prefers among `available`; nil where it allows none of them. What is available
  /// first wins a tie, and a type that is named wins over a range.
  package static func form(_ accept: String?, available: [Form]) -> Form? {
    guard let accept, accept != "*/*", !accept.isEmpty else { return available.first }
    var best: (form: Form, rank: (Double, Int))?
    for form in available {
      guard let rank = rank(of: form, in: accept), rank.quality > 0 else { continue }
      let candidate = (rank.quality, rank.precision)
      if best.map({ $0.rank < candidate }) ?? true { best = (form, candidate) }
    }
    return best?.form
  }

  /// How much the most precise range that covers `form` wants it.
  private static func rank(of form: Form, in accept: String) -> (quality: Double, precision: Int)? {
    var found: (quality: Double, precision: Int)?
    for range in accept.split(separator: ",") {
      let parts = range.split(separator: ";").map { $0.trimmingSpaces().lowercased() }
      guard let name = parts.first else { continue }
      let precision = name == form.type ? 2 : name == form.family ? 1 : name == "*/*" ? 0 : -1
      guard precision >= 0, precision > found?.precision ?? -1 else { continue }
      let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) }
      found = (weight ?? 1, precision)
    }
    return found
  }
}
