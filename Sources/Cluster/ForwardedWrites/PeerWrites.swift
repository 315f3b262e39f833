import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store
import Support

/// The writes of a peer: they go to the one that appended last, so that one node appends most of the time and few
/// appends meet another. That is a courtesy, and decides nothing: where that peer does not answer within a second, or
/// does not take the write, this one carries it out itself, under the same name (`PassedWriteHandlers` says why it is
/// done once then), and so becomes the one that appended last. A write that was passed on is passed on no further.
///
/// A peer that is alone, or appended last, passes nothing on.
final class PeerWrites: Sendable {
  /// The fate of a write, for its request when that is handled once more.
  enum Outcome: Sendable {
    /// This node is to carry it out.
    case turn(Turn)
    /// This node could not carry it out, because others were first each time, or is not to any more: it is for the one
    /// that has appended last by now, if that is another.
    case givenBack(Turn)
  }

  /// A write that is for this node, or was.
  struct Turn: Sendable {
    /// Its name, where nodes have given it one.
    var write: PassedWrite?
    var doubt = PassedWriteHandlers.Doubt.none
    /// The number of times that it has gone back.
    private var returns = 0
    /// True if the name is another node's, which may ask for it again.
    fileprivate let isNamedElsewhere: Bool

    /// The write of a request as it came: with a name where another node has given it one, which may have asked for it
    /// before.
    init(_ write: PassedWrite?, _ writes: PassedWrites) {
      (self.write, isNamedElsewhere) = (write, write != nil)
      if let write, writes.isDoubtful(write.id) { doubt = .otherPeer }
    }

    /// The same after another peer was sent the write under a name, and has not said what became of it.
    fileprivate func doubting(_ write: PassedWrite) -> Turn {
      var turn = self
      (turn.write, turn.doubt) = (write, .otherPeer)
      return turn
    }

    /// The same, gone back once more; nil where it has gone back too often.
    fileprivate var goneBack: Turn? {
      guard returns < Self.mostReturns else { return nil }
      var turn = self
      turn.returns += 1
      return turn
    }

    /// Each time, other peers have appended, so that nothing stands still.
    private static let mostReturns = 3
  }

  private let journal: any SharedJournal
  private let store: Store
  private let directory: NodeDirectory
  /// True if the other peers have to know who asks; they then take writes only from a node that shows a token.
  private let hasCredentials: Bool
  private let writes: PassedWrites
  private let forwarder: WriteForwarder
  private let state = Locked(State())

  private struct State {
    /// Peers that have not answered, and until when they are not asked.
    var silent: [NodeAddress: ContinuousClock.Instant] = [:]
    /// The last pen that was asked for, and the address that it is.
    var pen = ""
    var address: NodeAddress?
  }

  /// The time without an answer after which this node carries a write out itself.
  private static let patience = WriteTime.forwarding
  /// The time in which a peer that has not answered is not asked, as long as it is the one that appended last.
  private static let rest = Duration.seconds(3)

  /// Creates what forwards the writes of a store over a journal that other nodes append to, with the credentials of
  /// clients if `hasCredentials`; `answers` has those that wait for it, `writes` what other nodes have passed on.
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

  /// The number of writes that wait for a connection or the other peer's answer.
  var waitingCount: Int { forwarder.waitingCount }

  /// Passes a write on; nil where this node is to carry it out. `turn` is what became of it so far. Throws
  /// `malformed-query`.
  func response(
    to request: borrowing Request, _ route: Route, _ turn: Turn?
  ) throws(Problem) -> HandlerResponse? {
    guard !hasCredentials || forwarder.hasToken, let holder = holder() else { return nil }
    let named = try PassedWrite(of: request)
    // Who has a stream that an object is to last with is asked by this node, and may take longer to answer than others
    // wait for the one that appended last.
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

  /// The way back of a write that this node cannot carry out, because others append first each time.
  struct WayBack: Sendable {
    /// The fate of the write, whose request is handled once more; nil for one that another node has passed on to be
    /// carried out here, which that one does itself then.
    fileprivate let outcome: Outcome?

    /// The response to a write that has gone back.
    var response: Response {
      let problem = Problem(.storeUnavailable, "other nodes have appended first each time; nothing was changed")
      var response = problem.response
      response.retry = outcome.map { Response.Retry(with: $0) }
      return response
    }
  }

  /// Returns the way back of a write that this node is to carry out: it goes to the one of the others that appended
  /// last. Nil where it has gone back often enough, or names streams of other nodes.
  func wayBack(_ request: borrowing Request, _ turn: Turn) -> WayBack? {
    guard let goneBack = turn.goneBack, request.outcome == nil || request.outcome is Outcome else { return nil }
    // What comes from another node to be carried out here goes back to that one; what was turned to this node does not.
    if request.outcome == nil, turn.write?.isFinal == true { return WayBack(outcome: nil) }
    request.keepBody()
    return WayBack(outcome: .givenBack(goneBack))
  }

  /// Ends what is under way.
  func stop() { forwarder.stop() }

  /// The rules for a write that was to go to the peer that appended last.
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
      // It may have come here, or gone silent, while the write waited.
      guard peers.holder() == holder else {
        completion.handleAgain(with: turn.goneBack.map { Outcome.givenBack($0) } ?? .turn(turn))
        return false
      }
      return true
    }

    func response(_ response: Response, to answer: NodeAnswer) -> Response? {
      // It has too much to do, is about to stop, or does not know itself what became of it.
      guard answer.status < 500, answer.status != HTTPResponse.Status.tooManyRequests.code else { return nil }
      return PassedWriteHandlers.told(response, turn.doubt)
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

  /// Returns the turn of a write of which the peer that was sent it has not said what came of it.
  private func doubt(_ write: PassedWrite, _ turn: Turn) -> Turn {
    // Nobody asks again for a name that this node has made.
    if turn.isNamedElsewhere { writes.doubt(write.id) }
    return turn.doubting(write)
  }

  /// The peer that appended last, where that is another one that answers.
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
