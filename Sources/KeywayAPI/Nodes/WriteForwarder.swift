import Glibc
import HTTPServer
import HTTPTypes
import KeyValueModel
import Locking
import ModelStore

/// Passes writes on to the node that takes them, and answers with its answer once this node has what they did.
///
/// A write has an id (`PassedWrite`). Where it may have been received and no answer came, it is sent again for some
/// seconds: the other node does it the first time that it gets the id, and answers the second time what came of it.
/// Where that cannot be found out, its client is told that it is not known whether it was done.
final class WriteForwarder: Sendable {
  private let client: NodeClient
  private let limits: Node.ForwardingLimits
  private let pool: ReadingPool
  /// Answers that wait for this node.
  private let answers: RevisionWaits
  private let store: Store
  private let following: Following
  private let staleMilliseconds: UInt64
  /// For how long it is asked what became of a write.
  private let askingTime: Duration
  private let hasStopped = Locked(false)

  /// Between two questions what became of a write, in microseconds.
  private static let pause: UInt32 = 100_000

  /// A forwarder for a store that follows; `answers` has those that wait for it.
  init(_ options: Node.Options, store: Store, following: Following, answers: RevisionWaits) {
    limits = options.forwarding
    client = NodeClient(following.plan.leader.client.address, keeping: limits.connections)
    pool = ReadingPool(limits.threads)
    self.answers = answers
    self.store = store
    self.following = following
    staleMilliseconds = UInt64(options.staleSeconds) * 1_000
    askingTime = .seconds(options.waits.seconds)
  }

  /// How many writes wait for a connection or the other node's answer.
  var waitingCount: Int { pool.waitingCount + pool.runningCount }

  /// Passes a request on, which may be one that changes the revocations. Throws `leader-unreachable` and `overloaded`,
  /// without having sent anything.
  func forward(_ request: borrowing Request, isRevocation: Bool) throws(Problem) -> HandlerResponse {
    guard following.silenceMilliseconds < staleMilliseconds else {
      throw Problem(
        .leaderUnreachable,
        "\(client.address) takes the writes, and nothing was heard of it for nodes.staleSeconds; nothing was changed")
    }
    let sender = request.client
    guard answers.hasRoom(for: sender) else { throw Self.overload }
    let forwarded = NodeRequest(passing: request, fields: NodeRequest.writeFields)
    // A follower of this one has named it already.
    let write = try PassedWrite(of: request) ?? PassedWrite(since: store.cursor(store.revision))
    return .deferred { [self] completion in
      let isAccepted = pool.submit(for: sender) { [self] in
        guard !completion.isAbandoned else { return completion.respond(Self.overload.response) }
        pass(forwarded, write, of: sender, to: completion, isRevocation)
      }
      if !isAccepted { completion.respond(Self.overload.response) }
    }
  }

  /// Ends what is under way.
  func stop() {
    hasStopped.withLock { $0 = true }
    client.cut()
    pool.stop()
  }

  private static var overload: Problem {
    Problem(.overloaded, "as many writes are passed on as nodes.forwarding and nodes.forwardingPerClient allow")
  }

  private func pass(
    _ request: NodeRequest, _ write: PassedWrite, of sender: ClientAddress, to completion: Completion,
    _ isRevocation: Bool
  ) {
    let answer: NodeAnswer
    do throws(NodeFault) {
      answer = try self.answer(to: request, write)
    } catch {
      let fate =
        error.isUnsent
        ? "nothing was changed"
        : "it is not known whether the write was done: send it again with its Idempotency-Key, or with If-Match"
      return completion.respond(Problem(.leaderUnreachable, "\(client.address): \(error.reason); \(fate)").response)
    }
    let response = answer.response
    // Revocations have no revision that could be waited for. Where they cannot be had now, they come with the records.
    if isRevocation, response.status.kind == .successful { try? following.takeRevocations() }
    guard let cursor = answer["Keyway-Cursor"].flatMap({ Cursor($0) }), cursor.epoch == store.epoch,
      cursor.revision > store.revision
    else { return completion.respond(response) }
    answers.add(of: sender, until: cursor.revision, present: { [store] in store.revision }) { [store] in
      guard store.revision < cursor.revision else { return completion.respond(response) }
      let detail = "the write was judged by \(cursor), and this node has come to revision \(store.revision) only"
      completion.respond(Problem(.behind, detail).response)
    }
  }

  /// The other node's answer to a write. Throws a fault that is unsent where it was certainly not done.
  private func answer(to request: NodeRequest, _ write: PassedWrite) throws(NodeFault) -> NodeAnswer {
    let deadline = ContinuousClock.now + .seconds(limits.answerSeconds)
    do throws(NodeFault) {
      return try client.send(
        request.naming(write), silence: .seconds(limits.answerSeconds), limit: NodeAnswer.largestBytes)
    } catch {
      guard !error.isUnsent, !write.isAgain else { throw error }
      let end = min(deadline, .now + askingTime)
      guard let answer = outcome(of: request, write, before: end) else { throw error }
      return answer
    }
  }

  /// Asks what became of a write that was sent, and has it done where it was not; nil where that cannot be found out in
  /// time.
  private func outcome(
    of request: NodeRequest, _ write: PassedWrite, before end: ContinuousClock.Instant
  ) -> NodeAnswer? {
    var again = write
    again.isAgain = true
    while .now < end, !hasStopped.withLock({ $0 }) {
      usleep(Self.pause)
      let answer = try? client.send(request.naming(again), silence: end - .now, limit: NodeAnswer.largestBytes)
      // A node that is about to stop, or has just begun, does not know.
      if let answer, answer.status != 503 { return answer }
    }
    return nil
  }
}
