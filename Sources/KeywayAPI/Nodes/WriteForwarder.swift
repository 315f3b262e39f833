import HTTPServer
import HTTPTypes
import KeyValueModel
import ModelStore

/// Passes writes on to the node that takes them, and answers with its answer once this node has what they did.
///
/// A write is sent once: where it may have been received and no answer came, its client is told that it is not known
/// whether it was done.
final class WriteForwarder: Sendable {
  private let client: NodeClient
  private let limits: Node.ForwardingLimits
  private let pool: ReadingPool
  /// Answers that wait for this node.
  let answers: RevisionWaits
  private let store: Store
  private let following: Following
  private let staleMilliseconds: UInt64

  /// What of an answer is of the connection, or this server's own to say.
  private static let ownFields: Set<String> = [
    "connection", "keep-alive", "transfer-encoding", "content-length", "date", "server", "x-request-id",
    "x-content-type-options", "cross-origin-resource-policy", "vary",
  ]
  private static let passedFields: [HTTPField.Name] = [
    .authorization, .ifMatch, .ifNoneMatch, .contentType, .accept, .idempotencyKey, .keywayWriter, .keywayLifetime,
    .keywayCursor,
  ]
  private static let answerBytes = 256 << 20

  /// A forwarder for a store that follows. `now` gives nanoseconds that only grow.
  init(_ options: Node.Options, store: Store, following: Following, now: @escaping @Sendable () -> UInt64) {
    limits = options.forwarding
    client = NodeClient(following.plan.leader.client.address, keeping: limits.connections)
    var threads = RequestLimits()
    threads.threads = limits.connections
    threads.waiting = limits.waiting
    threads.waitingPerClient = limits.waitingPerClient
    pool = ReadingPool(threads)
    var waits = RevisionWaits.Limits()
    waits.seconds = options.waits.seconds
    waits.requests = limits.waiting
    waits.requestsPerClient = limits.waitingPerClient
    answers = RevisionWaits(waits, now: now)
    self.store = store
    self.following = following
    staleMilliseconds = UInt64(options.staleSeconds) * 1_000
  }

  /// How many writes wait for a connection or an answer.
  var waitingCount: Int { pool.waitingCount + pool.runningCount + answers.count }

  /// Passes a request on. Throws `leader-unreachable` and `overloaded`, without having sent anything.
  func forward(_ request: borrowing Request) throws(Problem) -> HandlerResponse {
    guard following.silenceMilliseconds < staleMilliseconds else {
      throw Problem(
        .leaderUnreachable,
        "\(client.address) takes the writes, and nothing was heard of it for nodes.staleSeconds; nothing was changed")
    }
    let sender = request.client
    guard answers.hasRoom(for: sender) else { throw Self.overload }
    let forwarded = Self.request(request)
    return .deferred { [self] completion in
      let isAccepted = pool.submit(for: sender) { [self] in
        guard !completion.isAbandoned else { return completion.respond(Self.overload.response) }
        pass(forwarded, of: sender, to: completion)
      }
      if !isAccepted { completion.respond(Self.overload.response) }
    }
  }

  /// Ends what is under way.
  func stop() {
    client.cut()
    answers.close()
    pool.stop()
  }

  private static var overload: Problem {
    Problem(.overloaded, "as many writes are passed on as nodes.forwarding and nodes.forwardingPerClient allow")
  }

  private static func request(_ request: borrowing Request) -> NodeRequest {
    var target = request.target
    if let authority = Target.authority(of: target), let range = target.firstRange(of: authority) {
      target = String(target[range.upperBound...])
    }
    var forwarded = NodeRequest(request.method.rawValue, target.hasPrefix("/") ? target : "/\(target)")
    for name in passedFields {
      if let value = request.header(name) { forwarded.fields.append((name.rawName, value)) }
    }
    // A session is this node's; the token that it stands for is good on every one.
    if request.header(.authorization) == nil, let session = Session(in: request) {
      forwarded.fields.append(("Authorization", "Bearer \(session.token)"))
    }
    forwarded.fields.append((RequestID.fieldName, request.id.text))
    if request.address != .unknown { forwarded.fields.append(("X-Forwarded-For", request.address.description)) }
    forwarded.body = request.body()
    return forwarded
  }

  private func pass(_ request: NodeRequest, of sender: ClientAddress, to completion: Completion) {
    let answer: NodeAnswer
    do throws(NodeFault) {
      answer = try client.send(request, silence: .seconds(limits.answerSeconds), limit: Self.answerBytes)
    } catch {
      let fate =
        error.isUnsent
        ? "nothing was changed"
        : "it is not known whether the write was done: send it again with its Idempotency-Key, or with If-Match"
      return completion.respond(Problem(.leaderUnreachable, "\(client.address): \(error.reason); \(fate)").response)
    }
    let response = Self.response(answer)
    guard let cursor = answer["Keyway-Cursor"].flatMap({ Cursor($0) }), cursor.epoch == store.epoch,
      cursor.revision > store.revision
    else { return completion.respond(response) }
    answers.add(of: sender, until: cursor.revision, present: { [store] in store.revision }) { [store] in
      guard store.revision < cursor.revision else { return completion.respond(response) }
      let detail = "the write was judged by \(cursor), and this node has come to revision \(store.revision) only"
      completion.respond(Problem(.behind, detail).response)
    }
  }

  private static func response(_ answer: NodeAnswer) -> Response {
    var response = Response(status: HTTPResponse.Status(code: answer.status), body: answer.body)
    for field in answer.fields where !ownFields.contains(field.name.lowercased()) {
      if field.name.lowercased().hasPrefix("access-control-") { continue }
      guard let name = HTTPField.Name(field.name) else { continue }
      response.fields.append(HTTPField(name: name, value: field.value))
    }
    return response
  }
}
