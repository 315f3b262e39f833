import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store

/// Passes writes on to the node that takes them, and answers with its answer once this node has what they did.
///
/// A write has an id (`PassedWrite`). Where it may have been received and no answer came, it is sent again for some
/// seconds: the other node does it the first time that it gets the id, and answers the second time what came of it.
/// Where that cannot be found out, its client is told that it is not known whether it was done.
final class WriteForwarder: Sendable {
  private let address: NodeAddress
  /// What goes with others, and alone on a thread of the pool.
  private let batcher: WriteBatcher
  private let pool: ReadingPool
  /// Answers that wait for this node.
  private let answers: RevisionWaits
  private let store: Store
  private let following: Following
  private let staleMilliseconds: UInt64

  /// A forwarder for a store that follows; `answers` has those that wait for it. For as long as `asking` the other node
  /// is asked what became of a write that it has not answered.
  init(
    _ options: ClusterOptions, store: Store, following: Following, answers: RevisionWaits, asking: Duration,
    by outbound: OutboundClient
  ) {
    let limits = options.forwarding
    address = following.plan.leader.client.address
    batcher = WriteBatcher(
      NodeClient(address, keeping: limits.connections, by: outbound), limits,
      WriteBatcher.Times(silence: .seconds(limits.answerSeconds), asking: asking),
      token: NodeToken(file: options.tokenFile))
    pool = ReadingPool(limits.threads)
    self.answers = answers
    self.store = store
    self.following = following
    staleMilliseconds = UInt64(options.staleSeconds) * 1_000
  }

  /// How many writes wait for a connection or the other node's answer.
  var waitingCount: Int { pool.waitingCount + pool.runningCount + batcher.count }

  /// Forwards a request, which may be one that changes the revocations or the sessions. The response has further fields
  /// of the answer, which the caller reads. Throws `leader-unreachable` and `overloaded`, without having sent anything.
  func forward(
    _ request: borrowing Request, _ route: Route, reading names: [HTTPField.Name] = []
  ) throws(Problem) -> HandlerResponse {
    guard following.silenceMilliseconds < staleMilliseconds else {
      throw Problem(
        .leaderUnreachable,
        "\(address) takes the writes, and nothing was heard of it for nodes.staleSeconds; nothing was changed")
    }
    let sender = request.client
    guard answers.hasRoom(for: sender) else { throw Self.overload }
    let forwarded = NodeRequest(passing: request, fields: NodeRequest.writeFields, hasCredentials: true)
    // A follower of this one has named it already.
    let write = try PassedWrite(of: request) ?? PassedWrite(since: store.cursor(store.revision))
    let goesWithOthers = OutgoingWrite.goesWithOthers(forwarded, of: request, route, store)
    let isRevocation = route.position(of: .sub) != nil
    return .deferred { [self, forwarded] completion in
      let outgoing = OutgoingWrite(request: forwarded, write: write) {
        guard completion.isAbandoned else { return true }
        completion.respond(Self.overload.response)
        return false
      } finish: { [self] in
        finish($0, of: sender, to: completion, reading: names, isRevocation)
      }
      let isAccepted =
        goesWithOthers
        ? batcher.submit(outgoing, of: sender) : pool.submit(for: sender) { [self] in batcher.sendAlone(outgoing) }
      if !isAccepted { completion.respond(Self.overload.response) }
    }
  }

  /// Ends what is under way.
  func stop() {
    batcher.stop()
    pool.stop()
  }

  private static var overload: Problem {
    Problem(.overloaded, "as many writes are passed on as nodes.forwarding and nodes.forwardingPerClient allow")
  }

  private func finish(
    _ result: Result<NodeAnswer, NodeFault>, of sender: ClientAddress, to completion: Completion,
    reading names: [HTTPField.Name], _ isRevocation: Bool
  ) {
    let answer: NodeAnswer
    var response: Response
    do throws(NodeFault) {
      answer = try result.get()
      response = try answer.passedBack()
      for name in names { response.fields[name] = answer[name.rawName] }
    } catch {
      let fate =
        error.isUnsent
        ? "nothing was changed"
        : "it is not known whether the write was done: send it again with its Idempotency-Key, or with If-Match"
      return completion.respond(Problem(.leaderUnreachable, "\(address): \(error.reason); \(fate)").response)
    }
    // Revocations have no revision that could be waited for. Where they cannot be had now, they come with the records.
    if isRevocation, response.status.kind == .successful { try? following.takeRevocations() }
    guard let cursor = answer["Keyway-Cursor"].flatMap({ Cursor($0) }), cursor.epoch == store.epoch else {
      return completion.respond(response)
    }
    answers.awaitRevision(cursor.revision, of: sender, in: store) { [response] in
      completion.respond($0?.response ?? response)
    }
  }
}
