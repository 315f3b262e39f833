import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store

/// The writes of a follower, which are all forwarded to its leader.
///
/// A write that may have been received and has no answer is sent again for some seconds: the leader carries it out when
/// it first receives the name, and afterwards answers with the outcome. If the outcome cannot be found out, the client
/// is told that it is not known whether the write was done.
struct LeaderWrites: Sendable {
  private let forwarder: WriteForwarder
  private let address: NodeAddress
  private let store: Store
  private let following: Following
  private let staleMilliseconds: UInt64

  /// Creates the rules for a store that follows another; `answers` holds the answers that wait for it. For at most
  /// `asking`, the leader is asked for the outcome of a write that it has not answered.
  init(
    _ options: ClusterOptions, store: Store, following: Following, answers: RevisionWaits, asking: Duration,
    by outbound: OutboundClient
  ) {
    (self.store, self.following) = (store, following)
    address = following.plan.leader.client.address
    let silence = Duration.seconds(options.forwarding.answerSeconds)
    forwarder = WriteForwarder(
      store, options, WriteForwarder.Times(batches: WriteBatcher.Times(silence: silence, asking: asking)),
      answers: answers, hasCredentials: true, by: outbound)
    staleMilliseconds = UInt64(options.staleSeconds) * 1_000
  }

  /// The number of writes that wait for a connection or the other node's answer.
  var waitingCount: Int { forwarder.waitingCount }

  /// Forwards a request, which may be one that changes the revocations or the sessions. The response has further fields
  /// of the answer, which the caller reads. Throws `leader-unreachable`, `overloaded` and `malformed-query`, without
  /// having sent anything.
  func forward(
    _ request: borrowing Request, _ route: Route, reading names: [HTTPField.Name] = []
  ) throws(Problem) -> HandlerResponse {
    guard following.silenceMilliseconds < staleMilliseconds else {
      throw Problem(
        .leaderUnreachable,
        "no news of the leader for nodes.staleSeconds (this node follows \(address)); nothing was changed")
    }
    // A follower of this node may have named the write already.
    let write = try PassedWrite(of: request) ?? PassedWrite(since: store.cursor(store.revision))
    let rules = Rules(
      address: address, following: following, fields: names, isRevocation: route.position(of: .sub) != nil)
    guard let response = forwarder.forward(request, route, as: write, to: address, rules) else {
      throw Rules.overload
    }
    return response
  }

  /// Cancels the requests under way.
  func stop() { forwarder.stop() }

  private struct Rules: ForwardingRules {
    let address: NodeAddress
    let following: Following
    let fields: [HTTPField.Name]
    let isRevocation: Bool

    func begins(_ completion: Completion) -> Bool {
      guard completion.isAbandoned else { return true }
      refused(completion)
      return false
    }

    func response(_ response: Response, to answer: NodeAnswer) -> Response? {
      var response = response
      for name in fields { response.fields[name] = answer[name.rawName] }
      // Revocations have no revision to wait for. If they cannot be fetched now, they arrive with the records.
      if isRevocation, response.status.kind == .successful { try? following.takeRevocations() }
      return response
    }

    func failed(_ fault: NodeFault?, _ completion: Completion) {
      let fate =
        fault?.isUnsent == true
        ? "nothing was changed"
        : "it is not known whether the write was done: send it again with its Idempotency-Key, or with If-Match"
      completion.respond(
        Problem(.leaderUnreachable, "\(address): \(fault?.reason ?? "no answer arrived"); \(fate)").response)
    }

    func refused(_ completion: Completion) { completion.respond(Self.overload.response) }

    static var overload: Problem {
      Problem(
        .overloaded,
        "too many writes are being forwarded: nodes.forwarding is the limit, a quarter of it for one client")
    }
  }
}
