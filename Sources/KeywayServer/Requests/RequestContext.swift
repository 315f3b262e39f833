import HTTPServer
import KeyValueModel

/// What is known of a request when its handler is called, besides the request itself.
struct RequestContext: Sendable {
  /// The resource that is asked for.
  let route: Route
  /// The path and the query parameters.
  let target: Target
  /// Who asks.
  let requester: Requester
  /// The names of the query parameters that the answer takes, or the stream where that is wanted.
  var parameters: [String] = []
  /// What an `Idempotency-Key` makes of a `POST` that writes; nil without one.
  var idempotency: IdempotentRequest?
  /// The streams of other nodes that the write names for objects to last with.
  var namedStreams = NamedStreams()
  /// The name of a write that a node has forwarded, with what it stands for; nil for a client's own.
  var passed: BoundWrite?
  /// What another node has answered to the same request meanwhile, where it has an `Idempotency-Key` or was passed on.
  var precedent: (@Sendable () -> Response?)?
  /// Gives what is answered where other nodes append again and again before this one can carry the write out, which it
  /// then has not done and does not do; nil where it goes on trying.
  var givenBack: (@Sendable () -> Response)?

  /// A variable part of the path, percent-decoded. The route's pattern must have it.
  subscript(parameter: Route.Parameter) -> String {
    guard let position = route.position(of: parameter) else {
      preconditionFailure("'\(route.pattern)' has no {\(parameter.rawValue)}")
    }
    return target.segments[position]
  }

  /// Throws `malformed-query` for a query parameter that the resource does not take.
  func checkParameters() throws(Problem) { try target.allowOnly(parameters) }

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
