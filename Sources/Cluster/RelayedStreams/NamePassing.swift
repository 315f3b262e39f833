import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store

/// Passes requests that name a stream or a page of another node on to that node, and answers as it does, once this node
/// has come to the state of the answer. A node that is not known or cannot be reached has taken its streams and pages
/// with it.
///
/// What such a request does, it does the second time as well: it is sent once more where a kept connection was lost.
final class NamePassing: Sendable {
  /// A request on its way.
  private struct Passed: Sendable {
    let request: NodeRequest
    let mark: NodeMark
    let sender: ClientAddress
    let isStream: Bool
    /// Whether it asks what a stream begins with.
    let isStreamHead: Bool
    /// What a stream is to go on from; nil where it begins with the state.
    let cursor: Cursor?
    /// What is answered where the name is no longer good.
    let unknown: Problem
    let completion: Completion
  }

  /// The streams that are sent on.
  let relay: StreamRelay
  private let directory: NodeDirectory
  private let limits: ClusterOptions.ForwardingLimits
  private let answers: RevisionWaits
  private let store: Store
  private let services: StreamServices
  private let clients: NodeClients
  /// True if the other nodes have to know who asks.
  private let hasCredentials: Bool

  private static let passedFields: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .contentType, .accept, .lastEventID, .keywayWriter, .idempotencyKey,
  ]
  /// What an event has besides what `streams.eventBytes` is about.
  private static let eventOverhead = 1 << 16

  /// Creates what forwards requests to the nodes of a directory, with the credentials of clients if `hasCredentials`;
  /// `answers` has the answers that wait for this node.
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

  /// How many requests wait for a connection or another node's answer.
  var waitingCount: Int { clients.waitingCount }

  /// Passes a request on where it names what another node has made; nil where it does not. Throws `overloaded`.
  func response(
    to request: borrowing Request, _ route: Route, _ target: Target, isStream: Bool
  ) throws(Problem) -> HandlerResponse? {
    guard !directory.isAlone else { return nil }
    guard let (mark, unknown) = Self.name(in: target, of: route, request.method) else { return nil }
    // Passed on once, a request is answered where it is.
    guard mark != directory.mark, request.header(.keywayForwarded) == nil else { return nil }
    let sender = request.client
    guard answers.hasRoom(for: sender), let pool = clients.pool() else { throw Self.overload }
    var forwarded = NodeRequest(passing: request, fields: Self.passedFields, hasCredentials: hasCredentials)
    forwarded.fields.append((HTTPField.Name.keywayForwarded.rawName, directory.mark.text))
    let asked = request.header(.keywayCursor).flatMap { Cursor($0) }
    if let cursor = cursor(asked, isPage: route.position(of: .stream) == nil) {
      forwarded.fields.append((HTTPField.Name.keywayCursor.rawName, cursor.description))
    }
    // The other node's answer to HEAD would not say how long the content is that this one is to name.
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

  /// Whose name a request has, and what is answered where it is not good.
  private static func name(
    in target: Target, of route: Route, _ method: HTTPRequest.Method
  ) -> (NodeMark, Problem)? {
    if let position = route.position(of: .stream) {
      return NodeMark(ofName: target.segments[position]).map { ($0, StreamRegistry.unknownStream) }
    }
    guard route.parameterNames(method, false).contains("page"), let page = target["page"] else { return nil }
    return NodeMark(ofName: page).map { ($0, PageStore.expired) }
  }

  /// The state that the other node is to have: what the client names, and what this node has shown. A page shows the
  /// state of its fetch.
  private func cursor(_ asked: Cursor?, isPage: Bool) -> Cursor? {
    let asked = asked.flatMap { $0.epoch == store.epoch ? $0 : nil }
    if isPage { return asked }
    return store.cursor(max(asked?.revision ?? 0, store.revision))
  }

  /// Ends what is under way.
  func stop() {
    clients.stop()
    relay.stop()
  }

  private static var overload: Problem {
    Problem(
      .overloaded, "as many requests are passed on as nodes.forwarding allows, or a quarter of that for one client")
  }

  private static var unknownNodes: Problem {
    Problem(
      .leaderUnreachable, "another node made what the request names, and this one has not heard yet of the others")
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

  /// A node that does not answer may be there, and one that takes no connection is gone.
  private static func problem(of fault: NodeFault, _ address: NodeAddress, _ passed: Passed) -> Problem {
    guard fault.isSilence, !fault.isUnsent else { return passed.unknown }
    return Problem(
      .overloaded, "\(address) made what the request names, and does not answer within nodes.answerSeconds; try again")
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

  /// Does something once this node has come to a revision; answers `behind` where that takes too long.
  private func whenReached(_ revision: Revision, _ passed: Passed, _ body: @escaping @Sendable () -> Void) {
    answers.awaitRevision(revision, of: passed.sender, in: store) { problem in
      if let problem { passed.completion.respond(problem.response) } else { body() }
    }
  }

  /// Sends a stream on, from what comes first.
  private func relay(_ passed: Passed, _ source: any NodeStream) throws(NodeFault) {
    // What begins it may have no id: where nothing was missed it is `open` alone, and an initial state may come later.
    var events = PassedEvents(limit: services.limits.eventBytes + Self.eventOverhead, after: passed.cursor)
    var beginning: [UInt8] = []
    while beginning.isEmpty {
      let bytes = try source.receive(before: .now + silence)
      guard !bytes.isEmpty else { throw NodeFault("the stream ends before its first event") }
      beginning = try events.take(bytes[...])
    }
    // What has another epoch is another store by now.
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
        .overloaded, "as many streams of other nodes are sent on as nodes.streams and nodes.streamsPerClient allow")
    }
    passed.completion.become(stream, fields: .eventStream)
  }
}
