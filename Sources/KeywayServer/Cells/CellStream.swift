import CEL
import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store
import Support

/// A stream with cells: one observer whose observations come and go.
final class CellStream: CommitReceiver {
  /// What it is known by, all its life.
  let name: StreamID
  /// Its present connection, or the last.
  private(set) var id: StreamID
  /// Who opened it, and has its memory counted.
  let client: ClientAddress
  private(set) var observer: ObserverID
  let services: StreamServices
  /// What its identity may read; nil for everything.
  private(set) var viewer: Viewer?
  /// The revision that it was opened at.
  let openedAt: Revision
  /// The `sub` that opened it, where that is known.
  var opener: ExactText?
  var isOver = false
  var cells = CellSet()
  /// The observed values that were worked out for the request under way.
  var values: ObservedValues?
  /// The last revision that it was told, and when.
  private(set) var lastTold: Revision = 0
  private var lastToldSecond: UInt64
  /// What the ledger has for the cells.
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
    // Streams with cells share no events: all those of one client together could be any amount.
    let position = StreamPosition.commit(event.revision)
    let held = contents.batchBytes[client] ?? 0
    guard held < services.limits.batchBytes else { return miss(position) }
    let text = services.encoder.text(of: visible)
    guard let bytes = text.event(at: position) else { return miss(position) }
    noteTold(event.revision)
    if text.ownCount > MemoryLedger.uncountedBytes { contents.batchBytes[client] = held + text.ownCount }
    return .stream(id, bytes)
  }

  /// Has the stream begin to lag at a position.
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
    guard let cut, !isOver, services.limits.resumeSeconds > 0, reserveCut() else { return }
    contents.cut.insert(
      CutStreams.Entry(
        stream: self, revision: publication.snapshot.revision, isDelivered: cut.isDelivered,
        deadline: services.now() + UInt64(services.limits.resumeSeconds)),
      services.limits)
  }

  /// Where it goes on: a connection, and the cells that it has there.
  struct Place {
    let id: StreamID
    let observer: ObserverID
    let viewer: Viewer?
    let cells: CellSet
  }

  /// Where it is.
  var place: Place { Place(id: id, observer: observer, viewer: viewer, cells: cells) }

  /// Goes on elsewhere.
  func move(to place: Place) {
    (id, observer, viewer, cells) = (place.id, place.observer, place.viewer, place.cells)
  }

  /// It is over, with all that it remembers.
  func release() {
    isOver = true
    cells = CellSet()
    account = nil
  }

  /// It is told something of a revision.
  func noteTold(_ revision: Revision) {
    lastTold = max(lastTold, revision)
    lastToldSecond = services.now()
  }

  /// Whether no event of the stream, no heartbeat either, can have had the id of a revision yet.
  func isUntold(_ revision: Revision) -> Bool {
    lastTold < revision && services.now() + 1 < lastToldSecond + UInt64(services.limits.heartbeatSeconds)
  }

  /// The present state, with the values that were worked out for the request under way.
  func present(_ publication: borrowing Publication) -> DeliveredState { DeliveredState(present: publication, values) }

  /// Ends what all cells observe and watch.
  func unregister(_ publication: inout Publication) {
    publication.observers.remove(observer)
    publication.observers.discharge(observer, of: QueryPayer(client))
    publication.queries.remove(observer)
    publication.queries.discharge(observer, of: QueryPayer(client))
  }

  // MARK: Memory

  /// Has the ledger know that the cells take up so many bytes. Throws `overloaded`; then nothing has changed.
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

  /// Has the ledger know what paused cells remember. Where it refuses, they forget it.
  func reservePending() {
    do throws(Problem) {
      try reserve(cells.weight + cells.pendingBytes)
    } catch {
      cells.forgetDelivered()
      // Less than there was is never refused.
      try? reserve(cells.weight + cells.pendingBytes)
    }
  }

  /// Has the ledger know that the stream is kept without a connection. False where it refuses, also what cells off
  /// screen may forget.
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

  /// The cells of these names as `GET` shows them, in the order given.
  func describeCells(_ names: [String]) -> JSONObject {
    var body = JSONObject()
    for name in names { body[name] = cells[name].map { .object($0.described(as: name)) } }
    return body
  }

  /// One cell as `GET` shows it. Throws `unknown-cell`.
  func describeCell(_ name: String) throws(Problem) -> JSONObject { try require(name).described(as: name) }

  /// A cell. Throws `unknown-cell`.
  func require(_ name: String) throws(Problem) -> Cell {
    guard let cell = cells[name] else { throw Problem(.unknownCell, "the stream has no cell '\(name)'") }
    return cell
  }

  // MARK: Slow readers

  // A reader that is too slow for what its stream receives: its cells are remembered as cells off screen are, and
  // receive in one update what they missed.

  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication) {
    guard !cells.isSuspended else { return }
    defer { reservePending() }
    let shown = cells.byName.filter { !$0.value.isPaused }
    suspend(shown, after: firstMissed.lastNotified, publication)
    for (name, cell) in cells.byName {
      // What a cell received when it was bound or came into view, or what it missed before it went off screen, may be
      // among what was missed: it receives everything anew.
      let isRefreshed = StreamPosition.state(at: cell.refreshedAt) >= firstMissed && shown[name] != nil
      let isHidden = cell.pausedAt.map { StreamPosition.commit($0) >= firstMissed } ?? false
      if isRefreshed || isHidden { cells[name]?.isOwedInitial = true }
      guard let lost = cell.lost, lost.position >= firstMissed, shown[name] != nil || isHidden else { continue }
      cells.absorb([], gone: lost.object, by: name)
    }
  }

  /// Has the cells on screen remember what they have received up to a revision, and what they missed since. Where that
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

  /// So many bytes of text may be encoded while writers wait.
  private static let textBytesUnderLock = 65_536

  /// The catching up of a stream of which too much has to be worked out while writers wait: its cells are told what
  /// they missed up to now, and go on missing what comes meanwhile.
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
  /// Has the cells catch up and gives what those on screen receive of it: what they missed or, where that is too long,
  /// their state, which has no old values, and of a live query no deletions.
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
