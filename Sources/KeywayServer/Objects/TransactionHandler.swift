import HTTPServer
import HTTPTypes
import KeyValueModel
import OrderedCollections

/// `POST /v1/transactions`: operations as JSON.
struct TransactionHandler: Sendable {
  let schema: Schema
  let writer: TransactionWriter
  let limits: RequestLimits
  let streams: StreamRegistry
  /// Gives the id of an object that is created without one.
  let makeID: @Sendable () -> String

  /// The levels of a transaction around a value that it writes: the body, its list, the operation, the object to
  /// create. They come on top of those of a body, so that what a `PUT` of a key takes, a transaction takes.
  private static let envelopeLevels = 4

  /// The body of a transaction. Throws what is wrong with it as JSON.
  static func body(of request: borrowing Request) throws(Problem) -> JSONObject {
    try Body.object(of: request, depthLimit: Body.depthLimit + envelopeLevels)
  }

  /// Commits the operations, all or none.
  func commit(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    try LifetimeReader.refuse(request, "here 'lifetime' of create and patch says it")
    let body = try Self.body(of: request)
    guard case .array(let elements)? = body["operations"], body.members.count == 1 else {
      throw Problem(.invalidValue, "a transaction is {\"operations\":[…]}")
    }
    guard elements.count <= limits.transactionOperations else {
      throw Problem(
        .tooManyOperations, "\(elements.count) operations; a transaction has at most \(limits.transactionOperations)")
    }
    // What names no object asks no rule, and still makes a revision.
    if elements.isEmpty, context.requester.isUnknown { throw AccessControl.unauthenticated }
    let newIDs = NewIDs(makeID)
    let lifetimes = LifetimeReader(streams: streams, requester: context.requester, named: context.namedStreams)
    var operations: [Operation] = []
    for (index, element) in elements.enumerated() {
      do throws(ModelError) {
        let reader = try OperationReader(element, schema, makeID: newIDs.make)
        let operation = try reader.operation()
        operations.append(operation)
        if let lifetime = try reader.lifetime(lifetimes) {
          operations.append(.lifetime(operation.reference, lifetime))
        }
      } catch {
        var located = error
        located.operation = index
        throw Problem(located)
      }
    }
    let write = Write(operations: operations, subject: .transaction, newIDs: newIDs.ids)
    return try writer.submit(write, request, context) { [viewer = context.viewer] commit, state in
      // What was written may not be for the writer to read.
      if let viewer, !commit.results.allSatisfy({ state.record($0) == nil || state.isThere($0, for: viewer) }) {
        return Response(status: .noContent)
      }
      var bytes = Array("{\"revision\":\(commit.revision),\"results\":[".utf8)
      for (index, reference) in commit.results.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(contentsOf: "{\"object\":\"\(reference)\"}".utf8)
      }
      bytes.append(contentsOf: "]}".utf8)
      return .json(bytes)
    }
  }
}
