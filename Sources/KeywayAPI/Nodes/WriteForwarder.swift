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
  private let answers: RevisionWaits
  private let store: Store
  private let following: Following
  private let staleMilliseconds: UInt64

  private static let passedFields: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .contentType, .accept, .idempotencyKey, .keywayWriter, .keywayLifetime,
    .keywayCursor,
  ]
  private static let answerBytes = 256 << 20

  /// A forwarder for a store that follows; `answers` has those that wait for it.
  init(_ options: Node.Options, store: Store, following: Following, answers: RevisionWaits) {
    limits = options.forwarding
    client = NodeClient(following.plan.leader.client.address, keeping: limits.connections)
    pool = ReadingPool(limits.threads)
    self.answers = answers
    self.store = store
    self.following = following
    staleMilliseconds = UInt64(options.staleSeconds) * 1_000
  }

  /// How many writes wait for a connection or the other node's answer.
  var waitingCount: Int { pool.waitingCount + pool.runningCount }

  /// Passes a request on. Throws `leader-unreachable` and `overloaded`, without having sent anything.
  func forward(_ request: borrowing Request) throws(Problem) -> HandlerResponse {
    guard following.silenceMilliseconds < staleMilliseconds else {
      throw Problem(
        .leaderUnreachable,
        "\(client.address) takes the writes, and nothing was heard of it for nodes.staleSeconds; nothing was changed")
    }
    let sender = request.client
    guard answers.hasRoom(for: sender) else { throw Self.overload }
    let forwarded = NodeRequest(passing: request, fields: Self.passedFields)
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
    pool.stop()
  }

  private static var overload: Problem {
    Problem(.overloaded, "as many writes are passed on as nodes.forwarding and nodes.forwardingPerClient allow")
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
    let response = answer.response
    guard let cursor = answer["Keyway-Cursor"].flatMap({ Cursor($0) }), cursor.epoch == store.epoch,
      cursor.revision > store.revision
    else { return completion.respond(response) }
    answers.add(of: sender, until: cursor.revision, present: { [store] in store.revision }) { [store] in
      guard store.revision < cursor.revision else { return completion.respond(response) }
      let detail = "the write was judged by \(cursor), and this node has come to revision \(store.revision) only"
      completion.respond(Problem(.behind, detail).response)
    }
  }
}
