import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store
import Support

/// Passes the writes of a peer on to the one that appended last, so that one node appends most of the time and few
/// appends meet another. That is a courtesy, and decides nothing: where that peer does not answer within a second, or
/// does not take the write, this one carries it out itself, under the same name (`PassedWriteHandlers` says why it is
/// done once then), and so is the one that appended last. A write that was passed on is passed on no further.
///
/// A peer that is alone, or appended last, passes nothing on; threads and connections are made with the first write
/// that is.
final class PenPassing: Sendable {
  /// What has come of it, for the request when it is handled once more.
  enum Outcome: Sendable {
    /// The other peer's answer, to whose state this node has come.
    case answer(Response)
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
    /// How often it has gone back.
    private var returns = 0
    /// Whether the name is another node's, which may ask for it again.
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
  private let answers: RevisionWaits
  private let limits: ClusterOptions.ForwardingLimits
  private let taking: RecordTaking
  /// Shows the other peers that this one is a node.
  private let token: NodeToken
  /// True if the other peers have to know who asks; they then take writes only from a node that shows a token.
  private let hasCredentials: Bool
  private let writes: PassedWrites
  private let clients: NodeClients
  private let state = Locked(State())

  private struct State {
    /// Peers that have not answered, and until when they are not asked.
    var silent: [NodeAddress: ContinuousClock.Instant] = [:]
    /// The last pen that was asked for, and the address that it is.
    var pen = ""
    var address: NodeAddress?
  }

  /// After so long without an answer this node carries a write out itself.
  private static let patience = WriteTime.forwarding
  /// For how long a peer that has not answered is not asked, as long as it is the one that appended last.
  private static let rest = Duration.seconds(3)

  /// Creates what forwards the writes of a store over a journal that other nodes append to, with the credentials of
  /// clients if `hasCredentials`; `answers` has those that wait for it, `writes` what other nodes have passed on.
  init(
    _ journal: any SharedJournal, _ store: Store, _ directory: NodeDirectory, _ options: ClusterOptions,
    answers: RevisionWaits, writes: PassedWrites, hasCredentials: Bool, by outbound: OutboundClient
  ) {
    (token, self.hasCredentials) = (NodeToken(file: options.tokenFile), hasCredentials)
    (self.journal, self.store, self.directory, self.writes) = (journal, store, directory, writes)
    let limits = options.forwarding
    (self.limits, self.answers) = (limits, answers)
    taking = RecordTaking(journal, store)
    clients = NodeClients(limits) {
      NodeClient($0, keeping: limits.connections, connecting: Self.patience, by: outbound)
    }
  }

  /// How many writes wait for a connection or the other peer's answer.
  var waitingCount: Int { clients.waitingCount }

  /// Passes a write on; nil where this node is to carry it out. `turn` is what became of it so far. Throws
  /// `malformed-query`.
  func response(
    to request: borrowing Request, _ route: Route, _ turn: Turn?
  ) throws(Problem) -> HandlerResponse? {
    guard !hasCredentials || token.isThere, let holder = holder() else { return nil }
    let named = try PassedWrite(of: request)
    let turn = turn ?? Turn(named, writes)
    let sender = request.client
    // Who has a stream that an object is to last with is asked by this node, and may take longer to answer than others
    // wait for the one that appended last.
    guard named?.isFinal != true, request.header(.keywayForwarded) == nil,
      LifetimeReader.streams(namedBy: request, isTransaction: route.isTransaction).isEmpty,
      answers.hasRoom(for: sender), let pool = clients.pool(),
      let batcher = clients.batcher(of: holder, make: { makeBatcher($0) })
    else { return nil }
    var write = turn.write ?? PassedWrite(since: store.cursor(store.revision))
    write.isFinal = true
    let forwarded = NodeRequest(
      passing: request, fields: NodeRequest.writeFields, hasCredentials: hasCredentials)
    let goesWithOthers = OutgoingWrite.goesWithOthers(forwarded, of: request, route, store)
    return .postponed { [self, write] postponement in
      let outgoing = OutgoingWrite(request: forwarded, write: write) { [self] in
        begins(at: holder, turn, postponement)
      } finish: { [self] in
        finish($0, write, turn, at: holder, of: sender, postponement)
      }
      let isAccepted =
        goesWithOthers
        ? batcher.submit(outgoing, of: sender) : pool.submit(for: sender) { batcher.sendAlone(outgoing) }
      if !isAccepted { postponement.end(with: Outcome.turn(turn)) }
    }
  }

  /// What is answered to a write that this node is to carry out, where others append again and again before it can: it
  /// is handled once more, and goes to the one of them that appended last. The node that has passed it on to be carried
  /// out here does that itself then. Nil where it has gone back often enough, or names streams of other nodes.
  func givenBack(_ request: borrowing Request, _ turn: Turn) -> (@Sendable () -> Response)? {
    guard let goneBack = turn.goneBack, request.outcome == nil || request.outcome is Outcome else { return nil }
    // What comes from another node to be carried out here goes back to that one; what was turned to this node does not.
    let isOfAnotherNode = request.outcome == nil && turn.write?.isFinal == true
    if !isOfAnotherNode { request.keepBody() }
    return {
      let problem = Problem(.storeUnavailable, "other nodes have appended first each time; nothing was changed")
      var response = problem.response
      if !isOfAnotherNode { response.retry = Response.Retry(with: Outcome.givenBack(goneBack)) }
      return response
    }
  }

  /// Ends what is under way.
  func stop() { clients.stop() }

  private func makeBatcher(_ client: NodeClient) -> WriteBatcher {
    WriteBatcher(client, limits, WriteBatcher.Times(silence: Self.patience), token: token, taking)
  }

  /// Whether a write is still to be sent to the peer that it was to go to.
  private func begins(at holder: NodeAddress, _ turn: Turn, _ postponement: Postponement) -> Bool {
    guard !postponement.isAbandoned else {
      postponement.end(with: Outcome.answer(Problem(.overloaded, "the client has left").response))
      return false
    }
    // It may have come here, or gone silent, while the write waited.
    guard self.holder() == holder else {
      postponement.end(with: turn.goneBack.map { Outcome.givenBack($0) } ?? .turn(turn))
      return false
    }
    return true
  }

  /// Gives a write what has come of it.
  private func finish(
    _ result: Result<NodeAnswer, NodeFault>, _ write: PassedWrite, _ turn: Turn, at holder: NodeAddress,
    of sender: ClientAddress, _ postponement: Postponement
  ) {
    let (answer, passedBack): (NodeAnswer, Response)
    do throws(NodeFault) {
      answer = try result.get()
      passedBack = try answer.passedBack()
    } catch {
      state.withLock { state in
        state.silent = state.silent.filter { $0.value > .now }
        state.silent[holder] = .now + Self.rest
      }
      return postponement.end(with: Outcome.turn(error.isUnsent ? turn : doubt(write, turn)))
    }
    // It has too much to do, is about to stop, or does not know itself what became of it.
    guard answer.status < 500, answer.status != HTTPResponse.Status.tooManyRequests.code else {
      return postponement.end(with: Outcome.turn(doubt(write, turn)))
    }
    let response = PassedWriteHandlers.told(passedBack, turn.doubt)
    guard let cursor = answer[HTTPField.Name.keywayCursor.rawName].flatMap({ Cursor($0) }),
      cursor.epoch == store.epoch
    else {
      return postponement.end(with: Outcome.answer(response))
    }
    answers.awaitRevision(cursor.revision, of: sender, in: store) {
      postponement.end(with: Outcome.answer($0?.response ?? response))
    }
  }

  /// What becomes of a write of which a peer that it was sent to has not said what came of it.
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
