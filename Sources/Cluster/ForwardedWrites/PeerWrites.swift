import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store
import Support

/// The writes of a peer. They are forwarded to the peer that appended last, so that one node appends most of the time
/// and appends seldom collide. This is an optimization that correctness does not depend on: if that peer does not
/// answer within a second, or does not accept the write, this node carries it out itself under the same name
/// (`PassedWriteHandlers` explains why it is then done only once), and so becomes the peer that appended last. A
/// forwarded write is not forwarded further.
///
/// A peer that is alone, or appended last, forwards nothing.
final class PeerWrites: Sendable {
  /// The outcome of forwarding a write, for its request when that is handled again.
  enum Outcome: Sendable {
    /// This node must carry it out.
    case turn(Turn)
    /// This node could not carry it out, because other nodes kept appending first, or no longer has to: the write goes
    /// to the peer that appended last by now, if that is another node.
    case handedBack(Turn)
  }

  /// A write that this node must carry out, or had to.
  struct Turn: Sendable {
    /// The name of the write, if nodes have given it one.
    var write: PassedWrite?
    var doubt = PassedWriteHandlers.Doubt.none
    /// The number of times that the write has gone back.
    private var returns = 0
    /// True if another node made the name, and may ask for the write again.
    fileprivate let isNamedElsewhere: Bool

    /// Creates the turn of a request as it arrived; `write` is its name if another node has given it one, which may
    /// have asked for the write before.
    init(_ write: PassedWrite?, _ writes: PassedWrites) {
      (self.write, isNamedElsewhere) = (write, write != nil)
      if let write, writes.isDoubtful(write.id) { doubt = .otherPeer }
    }

    /// Returns the turn after the write was sent to another peer under a name, and that peer has not reported the
    /// outcome.
    fileprivate func doubting(_ write: PassedWrite) -> Turn {
      var turn = self
      (turn.write, turn.doubt) = (write, .otherPeer)
      return turn
    }

    /// The turn after the write has gone back once more; nil if it has gone back too often.
    fileprivate var goneBack: Turn? {
      guard returns < Self.mostReturns else { return nil }
      var turn = self
      turn.returns += 1
      return turn
    }

    /// The limit on going back. Each time, other peers have appended, so that there is progress.
    private static let mostReturns = 3
  }

  private let journal: any SharedJournal
  private let store: Store
  private let directory: NodeDirectory
  /// True if the peers authenticate clients; they then accept writes only from a node that presents a token.
  private let hasCredentials: Bool
  private let writes: PassedWrites
  private let forwarder: WriteForwarder
  private let state = Locked(State())

  private struct State {
    /// The peers that have not answered, and the time until which nothing is sent to them.
    var silent: [NodeAddress: ContinuousClock.Instant] = [:]
    /// The last value of the journal's `pen` that was looked up, and its parsed address.
    var pen = ""
    var address: NodeAddress?
  }

  /// The time without an answer after which this node carries out a write itself.
  private static let patience = WriteTime.forwarding
  /// The time for which nothing is sent to a peer that has not answered, as long as it is the one that appended last.
  private static let rest = Duration.seconds(3)

  /// Creates a forwarder of the writes of a store over a journal that other nodes append to, with the credentials of
  /// clients if `hasCredentials`; `answers` holds the answers that wait for it, `writes` the writes that other nodes
  /// have forwarded.
  init(
    _ journal: any SharedJournal, _ store: Store, _ directory: NodeDirectory, _ options: ClusterOptions,
    answers: RevisionWaits, writes: PassedWrites, hasCredentials: Bool, by outbound: OutboundClient
  ) {
    (self.journal, self.store, self.directory, self.writes) = (journal, store, directory, writes)
    self.hasCredentials = hasCredentials
    forwarder = WriteForwarder(
      store, options,
      WriteForwarder.Times(connecting: Self.patience, batches: WriteBatcher.Times(silence: Self.patience)),
      answers: answers, hasCredentials: hasCredentials, RecordTaking(journal, store), by: outbound)
  }

  /// The number of writes that wait for a connection or another peer's answer.
  var waitingCount: Int { forwarder.waitingCount }

  /// Forwards a write; returns nil if this node must carry it out. `turn` is the state of the write after earlier
  /// attempts, if any. Throws `malformed-query`.
  func response(
    to request: borrowing Request, _ route: Route, _ turn: Turn?
  ) throws(Problem) -> HandlerResponse? {
    guard !hasCredentials || forwarder.hasToken, let holder = holder() else { return nil }
    let named = try PassedWrite(of: request)
    // If the write binds an object to a stream, this node asks which node has the stream. That may take longer than
    // other nodes wait for the peer that appended last.
    guard named?.isFinal != true, request.header(.keywayForwarded) == nil,
      LifetimeReader.streams(namedBy: request, isTransaction: route.isTransaction).isEmpty
    else { return nil }
    let turn = turn ?? Turn(named, writes)
    var write = turn.write ?? PassedWrite(since: store.cursor(store.revision))
    write.isFinal = true
    let rules = Rules(peers: self, holder: holder, write: write, turn: turn)
    guard let response = forwarder.forward(request, route, as: write, to: holder, rules) else { return nil }
    request.keepBody()
    return response
  }

  /// The way back of a write that this node cannot carry out because other nodes keep appending first.
  struct WayBack: Sendable {
    /// The outcome with which the request is handled again; nil for a write that another node forwarded to be carried
    /// out here: that node then carries it out itself.
    fileprivate let outcome: Outcome?

    /// The response to a write that goes back.
    var response: Response {
      let problem = Problem(.storeUnavailable, "other nodes were first to append at each attempt; nothing was changed")
      var response = problem.response
      response.retry = outcome.map { Response.Retry(with: $0) }
      return response
    }
  }

  /// Returns the way back of a write that this node must carry out: it goes to the other node that appended last.
  /// Returns nil if the write has gone back too often, or names streams of other nodes.
  func wayBack(_ request: borrowing Request, _ turn: Turn) -> WayBack? {
    guard let goneBack = turn.goneBack, request.outcome == nil || request.outcome is Outcome else { return nil }
    // A write that another node forwarded to be carried out here goes back to that node; a write that this node has to
    // do itself after an attempt elsewhere does not.
    if request.outcome == nil, turn.write?.isFinal == true { return WayBack(outcome: nil) }
    request.keepBody()
    return WayBack(outcome: .handedBack(goneBack))
  }

  /// Cancels the requests under way.
  func stop() { forwarder.stop() }

  /// The rules for a write that is forwarded to the peer that appended last.
  private struct Rules: ForwardingRules {
    let peers: PeerWrites
    let holder: NodeAddress
    let write: PassedWrite
    let turn: Turn

    func begins(_ completion: Completion) -> Bool {
      guard !completion.isAbandoned else {
        completion.respond(Problem(.overloaded, "the client has left").response)
        return false
      }
      // This node may have appended last, or the peer may have stopped answering, while the write waited.
      guard peers.holder() == holder else {
        completion.handleAgain(with: turn.goneBack.map { Outcome.handedBack($0) } ?? .turn(turn))
        return false
      }
      return true
    }

    func response(_ response: Response, to answer: NodeAnswer) -> Response? {
      // The peer is overloaded, is about to stop, or does not know the outcome itself.
      guard answer.status < 500, answer.status != HTTPResponse.Status.tooManyRequests.code else { return nil }
      return PassedWriteHandlers.reported(response, turn.doubt)
    }

    func failed(_ fault: NodeFault?, _ completion: Completion) {
      if fault != nil { peers.noteSilence(of: holder) }
      completion.handleAgain(with: Outcome.turn(fault?.isUnsent == true ? turn : peers.doubt(write, turn)))
    }

    func refused(_ completion: Completion) { completion.handleAgain(with: Outcome.turn(turn)) }
  }

  private func noteSilence(of holder: NodeAddress) {
    state.withLock { state in
      state.silent = state.silent.filter { $0.value > .now }
      state.silent[holder] = .now + Self.rest
    }
  }

  /// Returns the turn of a write whose outcome the peer has not reported.
  private func doubt(_ write: PassedWrite, _ turn: Turn) -> Turn {
    // No other node asks again for a name that this node has made.
    if turn.isNamedElsewhere { writes.doubt(write.id) }
    return turn.doubting(write)
  }

  /// Returns the address of the peer that appended last; nil if that is this node, or the peer has not answered lately.
  private func holder() -> NodeAddress? {
    let pen = journal.pen
    guard !pen.isEmpty, pen != directory.url else { return nil }
    return state.withLock { state in
      if state.pen != pen { (state.pen, state.address) = (pen, try? NodeAddress(pen)) }
      guard let address = state.address else { return nil }
      return state.silent.isEmpty || state.silent[address].map { $0 <= .now } ?? true ? address : nil
    }
  }
}
