import CEL
import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store
import Support

/// A stream with cells: one observer whose observations come and go.
final class CellStream: CommitReceiver {
  /// The name, which stays the same for the life of the stream.
  let name: StreamID
  /// The present connection, or the last.
  private(set) var id: StreamID
  /// The client that opened the stream, and that its memory is counted for.
  let client: ClientAddress
  private(set) var observer: ObserverID
  let services: StreamServices
  /// The viewer whose read rules apply, or nil if none do.
  private(set) var viewer: Viewer?
  /// The revision at which the stream was opened.
  let openedAt: Revision
  /// The `sub` that opened the stream, or nil if it is not known.
  var opener: ExactText?
  var hasEnded = false
  var cells = CellSet()
  /// The observed values that were computed for the request in progress.
  var values: ObservedValues?
  /// The last revision that the stream was told, and the time of that in `lastToldSecond`.
  private(set) var lastTold: Revision = 0
  private var lastToldSecond: UInt64
  /// The memory that is reserved for the cells in the ledger.
  private var account: MemoryReservation?

  init(id: StreamID, client: ClientAddress, observer: ObserverID, openedAt: Revision, services: StreamServices) {
    self.openedAt = openedAt
    name = id
    lastToldSecond = services.now()
    self.id = id
    self.client = client
    self.observer = observer
    self.services = services
  }

  var observationCount: Int { cells.observationCount }
  var cellCount: Int { cells.count }
  var queries: [Query] { cells.byName.values.compactMap(\.query) }

  func context(ofCell cell: String?) -> String? { cell.flatMap { cells[$0]?.binding.context?.text } }

  func delivery(of event: StreamEvent, _ contents: inout StreamRegistry.Contents) -> Delivery? {
    guard let visible = cells.visiblePart(of: event) else { return nil }
    services.countNotifications(visible.changes.count + visible.queries.count)
    // Streams with cells share no events, so all those of one client together could take any amount of memory.
    let position = StreamPosition.commit(event.revision)
    let held = contents.batchBytes[client] ?? 0
    guard held < services.limits.batchBytes else { return miss(position) }
    let text = services.encoder.text(of: visible)
    guard let bytes = text.event(at: position) else { return miss(position) }
    noteTold(event.revision)
    if text.ownCount > MemoryLedger.uncountedBytes { contents.batchBytes[client] = held + text.ownCount }
    return .stream(id, bytes)
  }

  /// Returns the delivery that makes the stream begin to lag at a position.
  func miss(_ position: StreamPosition) -> Delivery { .streamMisses(id, position: position.rawValue) }

  func missed(_ event: ObserverEvent) -> Delivery {
    cells.forgetMissed()
    cells.lose(event.gone, at: event.revision)
    return miss(.commit(event.revision))
  }

  func overflow(_ contents: inout StreamRegistry.Contents) -> Delivery? {
    .endStream(id, services.encoder.closingEvent(.overflow))
  }

  func name(of id: StreamID) -> StreamID { name }

  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication
  ) {
    unregister(&publication)
    cells.forgetSegment()
    contents.receivers[observer] = nil
    contents.connections[name] = nil
    guard let cut, !hasEnded, services.limits.resumeSeconds > 0, reserveCut() else { return }
    contents.cut.insert(
      CutStreams.Entry(
        stream: self, revision: publication.snapshot.revision, isDelivered: cut.isDelivered,
        deadline: services.now() + UInt64(services.limits.resumeSeconds)),
      services.limits)
  }

  /// The place where a stream continues: a connection, and the cells that it has there.
  struct Place {
    let id: StreamID
    let observer: ObserverID
    let viewer: Viewer?
    let cells: CellSet
  }

  /// The present place of the stream.
  var place: Place { Place(id: id, observer: observer, viewer: viewer, cells: cells) }

  /// Continues the stream at another place.
  func move(to place: Place) {
    (id, observer, viewer, cells) = (place.id, place.observer, place.viewer, place.cells)
  }

  /// Ends the stream, and forgets all that it remembers.
  func release() {
    hasEnded = true
    cells = CellSet()
    account = nil
  }

  /// Records that the stream is told something of a revision.
  func noteTold(_ revision: Revision) {
    lastTold = max(lastTold, revision)
    lastToldSecond = services.now()
  }

  /// Returns true if no event of the stream, not even a heartbeat, can have had the id of a revision yet.
  func isUntold(_ revision: Revision) -> Bool {
    lastTold < revision && services.now() + 1 < lastToldSecond + UInt64(services.limits.heartbeatSeconds)
  }

  /// Returns the present state, with the values that were computed for the request in progress.
  func present(_ publication: borrowing Publication) -> DeliveredState { DeliveredState(present: publication, values) }

  /// Ends the observations and the live queries of all cells.
  func unregister(_ publication: inout Publication) {
    publication.observers.remove(observer)
    publication.observers.discharge(observer, of: QueryPayer(client))
    publication.queries.remove(observer)
    publication.queries.discharge(observer, of: QueryPayer(client))
  }

  // MARK: Memory

  /// Reserves memory for the cells in the ledger. Throws `overloaded`; then nothing has changed.
  func reserve(_ bytes: Int) throws(Problem) {
    guard let account, bytes > MemoryLedger.uncountedBytes else {
      account = try services.reserve(bytes, for: client)
      return
    }
    do throws(MemoryRefusal) {
      try account.resize(to: bytes)
    } catch {
      throw Problem(error)
    }
  }

  /// Reserves memory for what paused cells remember. If the ledger refuses, they forget it.
  func reservePending() {
    do throws(Problem) {
      try reserve(cells.weight + cells.pendingBytes)
    } catch {
      cells.forgetDelivered()
      // A smaller reservation than before is never refused.
      try? reserve(cells.weight + cells.pendingBytes)
    }
  }

  /// Reserves memory for keeping the stream without a connection. Returns false if the ledger refuses, even after cells
  /// off screen have forgotten what they may forget.
  @discardableResult
  func reserveCut() -> Bool {
    reservePending()
    do throws(Problem) {
      try reserve(StreamWeight.cut + cells.weight + cells.pendingBytes)
      return true
    } catch {
      return false
    }
  }

  // MARK: Describing

  func describe(in body: inout JSONObject) {
    body["kind"] = .string("cells")
    body["count"] = .integer(Int64(cells.count))
    body["observations"] = .integer(Int64(observationCount))
  }

  func describeDetails(in body: inout JSONObject) { body["cells"] = .object(describeCells(cells.sorted.map(\.key))) }

  /// Returns the cells of these names as `GET` shows them, in the order given.
  func describeCells(_ names: [String]) -> JSONObject {
    var body = JSONObject()
    for name in names { body[name] = cells[name].map { .object($0.described(as: name)) } }
    return body
  }

  /// Returns one cell as `GET` shows it. Throws `unknown-cell`.
  func describeCell(_ name: String) throws(Problem) -> JSONObject { try require(name).described(as: name) }

  /// Returns a cell. Throws `unknown-cell`.
  func require(_ name: String) throws(Problem) -> Cell {
    guard let cell = cells[name] else { throw Problem(.unknownCell, "the stream has no cell '\(name)'") }
    return cell
  }

  // MARK: Slow readers

  // If a reader is too slow for what its stream receives, its cells are treated like cells off screen: they remember
  // what they miss, and receive it in one update.

  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication) {
    guard !cells.isSuspended else { return }
    defer { reservePending() }
    let shown = cells.byName.filter { !$0.value.isPaused }
    suspend(shown, after: firstMissed.lastNotified, publication)
    for (name, cell) in cells.byName {
      // The missed events may include what a cell received when it was bound or came into view, or what it missed
      // before it went off screen: it receives everything anew.
      let isRefreshed = StreamPosition.state(at: cell.refreshedAt) >= firstMissed && shown[name] != nil
      let isHidden = cell.pausedAt.map { StreamPosition.commit($0) >= firstMissed } ?? false
      if isRefreshed || isHidden { cells[name]?.isOwedInitial = true }
      guard let lost = cell.lost, lost.position >= firstMissed, shown[name] != nil || isHidden else { continue }
      cells.absorb([], gone: lost.object, by: name)
    }
  }

  /// Makes the cells on screen remember what they have received up to a revision, and what they missed since. If that
  /// is not known any more, or would hold up the writer, they receive everything anew.
  private func suspend(_ shown: [String: Cell], after revision: Revision, _ publication: borrowing Publication) {
    for name in shown.keys { cells[name]?.pausedAt = revision }
    let observations = shown.values.flatMap(\.observations)
    guard let delivered = DeliveredState(after: revision, observedBy: observations, publication) else {
      return cells.suspendOwingState()
    }
    let observed = shown.filter { !$0.value.observations.isEmpty }
      .map { (name: Optional($0.key), observations: $0.value.observations) }
    var events: [ObserverEvent] = []
    let absent = publication.replay(observed, after: revision) { events.append($0) }
    guard let absent, !events.contains(where: \.hasOverflowed) else { return cells.suspendOwingState() }
    cells.suspend(at: delivered)
    for event in events {
      for (name, changes) in Dictionary(grouping: event.changes, by: { $0.cell ?? "" }) {
        cells.absorb(changes, gone: nil, by: name)
      }
    }
    for (name, cell) in shown {
      if let query = cell.query {
        cells[name]?.missed?.count = publication.queries.contentCount(of: query, since: revision + 1)
      }
      if absent.contains(name) { cells[name]?.isOwedInitial = true }
    }
  }

  // MARK: Catching up

  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork? {
    let snapshot = publication.snapshot
    var values = ObservedValues(steps: ObservedValues.stepsUnderLock)
    do throws(ModelError) {
      try values.evaluate(cells.observationsToCatchUp, in: snapshot.state, at: snapshot.revision)
    } catch {
      return catchUpWork(id, publication)
    }
    guard values.textBytes <= Self.textBytesUnderLock else { return catchUpWork(id, publication) }
    let present = DeliveredState(present: publication, values)
    let text = cells.caughtUp(to: present, services.encoder, isFirstOfID: isUntold(present.revision))
    noteTold(present.revision)
    reservePending()
    services.postCatchUp(text, to: id, at: present.revision)
    return nil
  }

  /// The maximum size of text that may be encoded while writers wait, in bytes.
  private static let textBytesUnderLock = 65_536

  /// Returns the work of catching up for a stream that needs too much of it while writers wait: its cells are told what
  /// they missed up to now, and remember what they miss meanwhile.
  private func catchUpWork(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork {
    let snapshot = publication.snapshot
    let told = cells
    var results: [Query: QueryResult] = [:]
    for query in queries { results[query] = publication.queries.result(of: query) }
    let segment = cells.beginSegment(at: snapshot.revision) { results[$0] }
    let isFirstOfID = isUntold(snapshot.revision)
    return { [services, results] store, registry in
      var told = told
      var values = ObservedValues(steps: store.limits.queryOpeningCost)
      let visible = told.byName.values.filter { $0.binding.isVisible && $0.isPaused }.flatMap(\.observations)
      do throws(ModelError) {
        try values.evaluate(visible, in: snapshot.state, at: snapshot.revision)
      } catch {
        return services.hub.post([.endStream(id, services.encoder.closingEvent(.overflow))], position: nil)
      }
      let reader = values.reader(of: snapshot.state)
      let present = DeliveredState(reader: reader, revision: snapshot.revision) { results[$0] }
      let text = told.caughtUp(to: present, services.encoder, isFirstOfID: isFirstOfID)
      store.withPublication { publication in
        registry.contents.withLock { contents in
          guard let stream = contents.subscriptions[id] as? CellStream else { return }
          let isLast = stream.cells.endSegment(segment, told, delivered: present)
          stream.noteTold(snapshot.revision)
          stream.reservePending()
          services.hub.post([services.catchUp(text, of: id, isLast: isLast)], position: nil)
        }
      }
    }
  }
}

extension CellSet {
  /// Lets the cells catch up, and returns what those on screen receive: what they missed or, if that is too long, their
  /// state, which has no old values, and for a live query no deletions.
  fileprivate mutating func caughtUp(
    to present: DeliveredState, _ encoder: EventEncoder, isFirstOfID: Bool
  ) -> EventBuffer {
    let before = self
    var update = catchUp(to: present, encoder)
    let text = encode(update, at: present.revision, encoder, isFirstOfID: isFirstOfID)
    guard text.isTooLong else { return text }
    self = before
    forgetMissed(onScreen: true)
    update = catchUp(to: present, encoder)
    return encode(update, at: present.revision, encoder, isFirstOfID: isFirstOfID)
  }
}
