import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store

/// Forwards writes to the node that appends them, and answers with its answer once this node has the resulting commits.
///
/// A write has a name (`PassedWrite`) under which it is done once, however often and to however many nodes it is sent.
/// Small writes that wait at the same time are sent together. The choice of the node, and the handling of a write that
/// it does not answer, differ: `LeaderWrites` has the rules of a follower, `PeerWrites` those of a peer. Threads and
/// connections are created for the first write.
final class WriteForwarder: Sendable {
  /// The time limits for another node.
  struct Times: Sendable {
    /// The time limit for connecting.
    var connecting = NodeClient.connectTime
    /// The time limits for its answers to batches and writes.
    var batches: WriteBatcher.Times
  }

  private let store: Store
  private let limits: ClusterOptions.ForwardingLimits
  private let times: Times
  /// The token that proves to the other nodes that this is a node.
  private let token: NodeToken
  /// True if forwarded writes include the client's credentials, because the other nodes authenticate clients.
  private let hasCredentials: Bool
  /// Takes over the records that other nodes have appended; nil if they arrive another way.
  private let taking: RecordTaking?
  /// The answers that wait for this node to reach their revision.
  private let answers: RevisionWaits
  private let clients: NodeClients

  /// Creates a forwarder of the writes of a store, with the credentials of clients if `hasCredentials`; `answers` holds
  /// the answers that wait for the store.
  init(
    _ store: Store, _ options: ClusterOptions, _ times: Times, answers: RevisionWaits, hasCredentials: Bool,
    _ taking: RecordTaking? = nil, by outbound: OutboundClient
  ) {
    (self.store, self.times, self.answers, self.hasCredentials) = (store, times, answers, hasCredentials)
    let limits = options.forwarding
    (self.limits, self.taking, token) = (limits, taking, NodeToken(file: options.tokenFile))
    clients = NodeClients(limits) {
      NodeClient($0, keeping: limits.connections, connecting: times.connecting, by: outbound)
    }
  }

  /// True if this node has a token that proves to others that it is a node.
  var hasToken: Bool { token.isConfigured }

  /// The number of writes that wait for a connection or another node's answer.
  var waitingCount: Int { clients.waitingCount }

  /// Forwards a write under a name to a node. Returns nil if too many answers wait for this node, of all clients or of
  /// the sender of the write, if writes are forwarded to too many nodes, and after `stop`.
  func forward(
    _ request: borrowing Request, _ route: Route, as write: PassedWrite, to address: NodeAddress,
    _ rules: some ForwardingRules
  ) -> HandlerResponse? {
    let sender = request.client
    guard answers.hasRoom(for: sender), let pool = clients.pool(),
      let batcher = clients.batcher(of: address, make: { makeBatcher($0) })
    else { return nil }
    let forwarded = NodeRequest(passing: request, fields: NodeRequest.writeFields, hasCredentials: hasCredentials)
    let goesWithOthers = OutgoingWrite.goesWithOthers(forwarded, of: request, route, store)
    return .deferred { [self] completion in
      let outgoing = OutgoingWrite(request: forwarded, write: write) {
        rules.begins(completion)
      } finish: { [self] in
        finish($0, rules, of: sender, completion)
      }
      let isAccepted =
        goesWithOthers
        ? batcher.submit(outgoing, of: sender) : pool.submit(for: sender) { batcher.sendAlone(outgoing) }
      if !isAccepted { rules.refused(completion) }
    }
  }

  /// Cancels the requests under way.
  func stop() { clients.stop() }

  private func makeBatcher(_ client: NodeClient) -> WriteBatcher {
    WriteBatcher(client, limits, times.batches, token: token, taking)
  }

  private func finish(
    _ result: Result<NodeAnswer, NodeFault>, _ rules: some ForwardingRules, of sender: ClientAddress,
    _ completion: Completion
  ) {
    let answer: NodeAnswer
    let response: Response
    do throws(NodeFault) {
      answer = try result.get()
      guard let accepted = rules.response(try answer.passedBack(), to: answer) else {
        return rules.failed(nil, completion)
      }
      response = accepted
    } catch {
      return rules.failed(error, completion)
    }
    guard let cursor = answer[HTTPField.Name.keywayCursor.rawName].flatMap({ Cursor($0) }), cursor.epoch == store.epoch
    else { return completion.respond(response) }
    answers.awaitRevision(cursor.revision, of: sender, in: store) { completion.respond($0?.response ?? response) }
  }
}

/// The rules for one write that is forwarded.
protocol ForwardingRules: Sendable {
  /// Called once, right before the write is sent for the first time. Returns false if it must not be sent; then
  /// `completion` has an answer.
  func begins(_ completion: Completion) -> Bool
  /// Returns the response for the client after the other node's answer, which would be passed back as `response`; nil
  /// if the answer does not give the outcome of the write.
  func response(_ response: Response, to answer: NodeAnswer) -> Response?
  /// Called once if the other node has not reported the outcome of the write; `fault` is nil if `response` returned
  /// nil. Answers `completion`.
  func failed(_ fault: NodeFault?, _ completion: Completion)
  /// Called once if the write cannot be sent, since too many wait. Answers `completion`.
  func refused(_ completion: Completion)
}
