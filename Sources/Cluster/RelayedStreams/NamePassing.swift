import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store

/// Forwards requests that name a stream or a page of another node to that node, and returns its answer once this node
/// has reached the revision of the answer. If a node is unknown or cannot be reached, its streams and pages are gone
/// too.
///
/// These requests are idempotent: a request is sent once more if a kept connection was lost.
final class NamePassing: Sendable {
  /// A request that is being forwarded.
  private struct Passed: Sendable {
    let request: NodeRequest
    let mark: NodeMark
    let sender: ClientAddress
    let isStream: Bool
    /// True for a HEAD request to a stream.
    let isStreamHead: Bool
    /// The position that a stream resumes from; nil if it begins with the state.
    let cursor: Cursor?
    /// The problem to answer with if the name is no longer valid.
    let unknown: Problem
    let completion: Completion
  }

  /// The streams that are relayed to clients.
  let relay: StreamRelay
  private let directory: NodeDirectory
  private let limits: ClusterOptions.ForwardingLimits
  private let answers: RevisionWaits
  private let store: Store
  private let services: StreamServices
  private let clients: NodeClients
  /// True if forwarded requests include the client's credentials, because the other nodes authenticate clients.
  private let hasCredentials: Bool

  private static let passedFields: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .contentType, .accept, .lastEventID, .keywayWriter, .idempotencyKey,
  ]
  /// The size of the parts of an event that `streams.eventBytes` does not count, in bytes.
  private static let eventOverhead = 1 << 16

  /// Creates a forwarder of requests to the nodes of a directory, with the credentials of clients if `hasCredentials`;
  /// `answers` holds the answers that wait for this node.
  init(
    _ limits: ClusterOptions.ForwardingLimits, directory: NodeDirectory, answers: RevisionWaits, store: Store,
    services: StreamServices, hasCredentials: Bool, by outbound: OutboundClient
  ) {
    self.limits = limits
    self.hasCredentials = hasCredentials
    self.directory = directory
    self.answers = answers
    self.store = store
    self.services = services
    clients = NodeClients(limits) { NodeClient($0, keeping: limits.connections, by: outbound) }
    relay = StreamRelay(services.hub, limits) { [weak store] in store?.revision ?? .max }
  }

  /// The number of requests that wait for a connection or another node's answer.
  var waitingCount: Int { clients.waitingCount }

  /// Forwards a request that names a stream or a page of another node; returns nil for any other request. Throws
  /// `overloaded`.
  func response(
    to request: borrowing Request, _ route: Route, _ target: Target, isStream: Bool
  ) throws(Problem) -> HandlerResponse? {
    guard !directory.isAlone else { return nil }
    guard let (mark, unknown) = Self.name(in: target, of: route, request.method) else { return nil }
    // A request is forwarded at most once.
    guard mark != directory.mark, request.header(.keywayForwarded) == nil else { return nil }
    let sender = request.client
    guard answers.hasRoom(for: sender), let pool = clients.pool() else { throw Self.overload }
    var forwarded = NodeRequest(passing: request, fields: Self.passedFields, hasCredentials: hasCredentials)
    forwarded.fields.append((HTTPField.Name.keywayForwarded.rawName, directory.mark.text))
    let asked = request.header(.keywayCursor).flatMap { Cursor($0) }
    if let cursor = cursor(asked, isPage: route.position(of: .stream) == nil) {
      forwarded.fields.append((HTTPField.Name.keywayCursor.rawName, cursor.description))
    }
    // Ask with GET: the other node's answer to HEAD would not give the length of the content, which this node must
    // state.
    if request.method == .head, !isStream { forwarded.method = HTTPRequest.Method.get.rawValue }
    let isStreamHead = isStream && request.method == .head
    let isStream = isStream && !isStreamHead
    let position = target.cursor(of: request).flatMap { Cursor($0) }.flatMap { cursor in
      cursor.epoch == store.epoch && cursor.revision <= store.revision ? cursor : nil
    }
    return .deferred { [self, forwarded] completion in
      let passed = Passed(
        request: forwarded, mark: mark, sender: sender, isStream: isStream, isStreamHead: isStreamHead,
        cursor: position, unknown: unknown, completion: completion)
      let isAccepted = pool.submit(for: sender) { [self] in
        guard !completion.isAbandoned else { return completion.respond(Self.overload.response) }
        pass(passed)
      }
      if !isAccepted { completion.respond(Self.overload.response) }
    }
  }

  /// Returns the node that made the name in a request, and the problem to answer with if the name is not valid; nil if
  /// the request has no name of a node.
  private static func name(
    in target: Target, of route: Route, _ method: HTTPRequest.Method
  ) -> (NodeMark, Problem)? {
    if let position = route.position(of: .stream) {
      return NodeMark(ofName: target.segments[position]).map { ($0, StreamRegistry.unknownStream) }
    }
    guard route.parameterNames(method, false).contains("page"), let page = target["page"] else { return nil }
    return NodeMark(ofName: page).map { ($0, PageStore.expired) }
  }

  /// Returns the state that the other node must have reached: the one that the client names, and the one that this node
  /// has shown. A page shows the state at the time of its query, so only the client's counts for a page.
  private func cursor(_ asked: Cursor?, isPage: Bool) -> Cursor? {
    let asked = asked.flatMap { $0.epoch == store.epoch ? $0 : nil }
    if isPage { return asked }
    return store.cursor(max(asked?.revision ?? 0, store.revision))
  }

  /// Cancels the requests under way and ends the relayed streams.
  func stop() {
    clients.stop()
    relay.stop()
  }

  private static var overload: Problem {
    Problem(
      .overloaded,
      "too many requests are being forwarded: nodes.forwarding is the limit, a quarter of it for one client")
  }

  private static var unknownNodes: Problem {
    Problem(
      .leaderUnreachable,
      "the request names a stream or page of another node, and this node has not learned of the other nodes yet")
  }

  // MARK: On a thread of the pool

  private func pass(_ passed: Passed) {
    guard let address = directory.address(of: passed.mark), let client = clients.client(of: address) else {
      return passed.completion.respond((directory.isComplete ? passed.unknown : Self.unknownNodes).response)
    }
    do throws(NodeFault) {
      guard passed.isStream else {
        let whole = try client.sendRepeatable(passed.request, silence: silence, limit: NodeAnswer.largestBytes)
        return self.answer(passed, whole)
      }
      let (answer, events) = try client.open(passed.request, silence: silence, limit: NodeAnswer.largestBytes)
      guard let events else { return self.answer(passed, answer) }
      try relay(passed, events)
    } catch {
      passed.completion.respond(Self.problem(of: error, address, passed).response)
    }
  }

  private var silence: Duration { .seconds(limits.answerSeconds) }

  /// Returns the problem to answer with. A node that does not answer in time may be running; one that accepts no
  /// connection is gone.
  private static func problem(of fault: NodeFault, _ address: NodeAddress, _ passed: Passed) -> Problem {
    guard fault.isSilence, !fault.isUnsent else { return passed.unknown }
    return Problem(
      .overloaded,
      "the request names a stream or page of \(address), which does not answer within nodes.answerSeconds; try again")
  }

  private func answer(_ passed: Passed, _ answer: NodeAnswer) {
    let response: Response
    do throws(NodeFault) {
      response = try passed.isStreamHead ? answer.headPassedBack() : answer.passedBack()
    } catch {
      let address = directory.address(of: passed.mark)?.description ?? "the other node"
      return passed.completion.respond(Problem(.badGateway, "\(address): \(error.reason)").response)
    }
    let cursor = answer["Keyway-Cursor"].flatMap { Cursor($0) }
    guard let cursor, cursor.epoch == store.epoch else { return passed.completion.respond(response) }
    whenReached(cursor.revision, passed) { passed.completion.respond(response) }
  }

  /// Runs `body` once this node has reached a revision; answers `behind` if that takes too long.
  private func whenReached(_ revision: Revision, _ passed: Passed, _ body: @escaping @Sendable () -> Void) {
    answers.awaitRevision(revision, of: passed.sender, in: store) { problem in
      if let problem { passed.completion.respond(problem.response) } else { body() }
    }
  }

  /// Relays a stream, beginning with its first events.
  private func relay(_ passed: Passed, _ source: any NodeStream) throws(NodeFault) {
    // The first event may have no id: if nothing was missed it is `open` alone, and an initial state may follow later.
    var events = PassedEvents(limit: services.limits.eventBytes + Self.eventOverhead, after: passed.cursor)
    var beginning: [UInt8] = []
    while beginning.isEmpty {
      let bytes = try source.receive(before: .now + silence)
      guard !bytes.isEmpty else { throw NodeFault("the stream ended before its first event") }
      beginning = try events.take(bytes[...])
    }
    // The other node has another epoch: it serves another store by now.
    guard events.cursor.map({ $0.epoch == store.epoch }) ?? true else {
      return passed.completion.respond(passed.unknown.response)
    }
    whenReached(events.revision, passed) { [self, events, beginning] in
      do throws(Problem) {
        try open(passed, source, events, beginning)
      } catch {
        passed.completion.respond(error.response)
      }
    }
  }

  private func open(
    _ passed: Passed, _ source: any NodeStream, _ events: PassedEvents, _ beginning: [UInt8]
  ) throws(Problem) {
    let hub = services.hub
    let id = hub.reserveID()
    let position = StreamPosition.state(at: events.revision).rawValue
    let stream: EventStream
    let reservation: MemoryReservation
    do throws(MemoryRefusal) {
      reservation = try services.ledger.reserve(events.pendingBytes, for: passed.sender, .pendingEvents)
    } catch {
      throw Problem(error)
    }
    do throws(StreamHubError) {
      stream = try hub.open(
        id, for: passed.sender, prelude: EventBytes(beginning, position: position),
        channel: StreamRelay.channel(of: id), overflow: .disconnect, beginning: .position(position))
    } catch {
      throw Problem(error)
    }
    guard relay.add(id, for: passed.sender, source, events, reservation) else {
      hub.abandon(stream)
      throw Problem(
        .overloaded, "too many streams of other nodes are being relayed: see nodes.streams and nodes.streamsPerClient")
    }
    passed.completion.become(stream, fields: .eventStream)
  }
}
