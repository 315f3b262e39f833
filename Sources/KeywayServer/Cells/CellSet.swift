import KeyValueModel
import KeyValueObserving

/// The cells of one stream by their names, and what each of them receives. It depends neither on the store nor on the
/// hub.
struct CellSet {
  private(set) var byName: [String: Cell] = [:]
  /// True if the stream's reader is too slow: no cell receives anything until the stream catches up.
  private(set) var isSuspended = false
  /// The number of the last event that told cells their state, or what they had missed, and not what a commit did.
  private var lastRefresh = 0
  /// The number of the last segment.
  private var lastSegment = 0

  subscript(name: String) -> Cell? {
    get { byName[name] }
    set { byName[name] = newValue }
  }

  var count: Int { byName.count }

  /// The cells in the order of their names.
  var sorted: [(key: String, value: Cell)] { byName.sorted { $0.key < $1.key } }

  /// The number of observations of its cells; a live query counts as one.
  var observationCount: Int { byName.values.reduce(0) { $0 + $1.observations.count + ($1.query == nil ? 0 : 1) } }

  /// The approximate size of the cells in bytes, with the former objects that they remember.
  var weight: Int { byName.values.reduce(formerBytes) { $0 + $1.weight } }
  var formerBytes: Int { byName.values.reduce(0) { $0 + ($1.former?.weight ?? 0) } }
  var pendingBytes: Int { byName.values.reduce(0) { $0 + ($1.pending?.deliveredBytes ?? 0) } }

  /// Makes paused cells forget what they had received: they receive everything anew.
  mutating func forgetDelivered() {
    for (name, cell) in byName where (cell.pending?.deliveredBytes ?? 0) > 0 && cell.pending?.gone == nil {
      byName[name]?.pending = MissedChanges(since: DeliveredValues())
      byName[name]?.isOwedInitial = true
    }
  }

  /// Adds changes that a cell misses to those that it remembers.
  mutating func absorb(_ changes: [Change], gone: Reference?, by name: String) {
    byName[name]?.pending?.absorb(changes, gone: gone)
  }

  /// Returns true if a cell does not receive the events of a revision now: it is paused, and `gates` do not say that
  /// its client is told in spite of that.
  private func isPaused(_ name: String?, _ gates: [String: CellGate], _ revision: Revision) -> Bool {
    guard let name, byName[name]?.isPaused == true else { return false }
    return gates[name]?.way(of: revision) != .tell
  }

  // MARK: Commits

  /// Applies what a commit did: paused cells remember it, and the part that the others receive is returned, or nil if
  /// there is none. If a stream is resumed, `gates` decide which cells the event concerns.
  mutating func visiblePart(of event: StreamEvent, through gates: [String: CellGate] = [:]) -> StreamEvent? {
    let revision = event.revision
    let event = gates.isEmpty ? event : event.filtered { gates[$0 ?? ""]?.way(of: revision) != .drop }
    let goneCells = Dictionary(grouping: event.gone, by: \.cell)
    let pausedChanges = Dictionary(grouping: event.changes.filter { isPaused($0.cell, gates, revision) }, by: \.cell)
    var hidden: Set<String> = []
    for name in byName.keys where isPaused(name, gates, revision) {
      let changes = pausedChanges[name] ?? []
      let gone = goneCells[name]?.first?.object
      guard !changes.isEmpty || gone != nil else { continue }
      hidden.insert(name)
      byName[name]?.pending?.absorb(changes, gone: gone)
    }
    var visible = StreamEvent(revision: event.revision, writer: event.writer)
    visible.changes = event.changes.filter { !hidden.contains($0.cell ?? "") }
    visible.gone = event.gone.filter { !hidden.contains($0.cell ?? "") }
    for notification in event.queries {
      let name = notification.cell ?? ""
      if !isPaused(name, gates, revision) {
        visible.queries.append(notification)
      } else if byName[name]?.missed != nil {
        byName[name]?.missed?.count += 1
      } else {
        // The cell is owed everything, so only the count matters.
        byName[name]?.pending?.absorb([], gone: nil)
      }
    }
    for gone in event.gone where gates[gone.cell ?? ""]?.isOfFormer(revision) != true {
      empty(gone.cell ?? "", of: gone.object, at: revision)
    }
    countReceived(visible)
    return visible.isEmpty ? nil : visible
  }

  /// Empties a cell whose object was deleted: it shows nothing.
  private mutating func empty(_ name: String, of object: Reference, at revision: Revision) {
    guard let cell = byName[name], !cell.observations.isEmpty else { return }
    byName[name]?.lost = LostObject(object: object, position: .commit(revision), observations: cell.observations)
    byName[name]?.binding.object = nil
    byName[name]?.observations = []
  }

  /// Empties cells whose objects were deleted by a commit of which the stream misses everything: it receives that
  /// later.
  mutating func lose(_ gone: [ObserverEvent.Gone], at revision: Revision) {
    for lost in gone {
      let name = lost.cell ?? ""
      byName[name]?.pending?.absorb([], gone: lost.object)
      empty(name, of: lost.object, at: revision)
    }
  }

  /// Counts an event for the cells that receive it: one for the changes, one for each live query, one for an end.
  private mutating func countReceived(_ event: StreamEvent) {
    let names = Set(event.changes.map { $0.cell ?? "" }).union(event.gone.map { $0.cell ?? "" })
    for name in names { byName[name]?.told += 1 }
    for notification in event.queries { byName[notification.cell ?? ""]?.told += 1 }
  }

  /// Encodes an update as of one revision, and counts its events as received: only the last has an id. The text of an
  /// empty update is empty. `isFirstOfID` says that no earlier event can have had the id.
  mutating func encode(
    _ update: CellUpdate, at revision: Revision, _ encoder: EventEncoder, isFirstOfID: Bool = false
  ) -> EventBuffer {
    var text = encoder.text()
    lastRefresh += 1
    let refresh = CellRefresh(number: lastRefresh, isFirstOfID: isFirstOfID)
    for name in update.cells { byName[name]?.refresh = refresh }
    guard !update.isTooLong else {
      text.giveUp()
      return text
    }
    var rest = StreamEvent(revision: revision)
    rest.changes = update.coalesced
    rest.queries = update.queries
    rest.gone = update.gone
    if !update.initial.isEmpty {
      encoder.appendChange(
        update.initial, revision: revision, isInitial: true, hasID: rest.isEmpty, to: &text)
      for name in Set(update.initial.map { $0.cell ?? "" }) { byName[name]?.told += 1 }
    }
    encoder.append(rest, to: &text)
    countReceived(rest)
    return text
  }

  // MARK: Slow readers

  /// Makes paused cells, with `onScreen` only those on screen, forget what they have missed: they receive everything
  /// anew.
  mutating func forgetMissed(onScreen: Bool = false) {
    // Cells that know it already are not copied.
    for (name, cell) in byName where cell.isPaused && !cell.isOwedInitial && (cell.binding.isVisible || !onScreen) {
      byName[name]?.isOwedInitial = true
    }
  }

  /// Suspends all cells: from now on none receives anything. Those on screen have received `delivered`. Cells that are
  /// bound meanwhile receive nothing either.
  mutating func suspend(at delivered: DeliveredState) {
    isSuspended = true
    for name in byName.keys { byName[name]?.pause(at: delivered) }
  }

  /// Suspends all cells if it is not known what those on screen have received, or if that takes too long to find out:
  /// they receive their state anew.
  mutating func suspendOwingState() {
    isSuspended = true
    for (name, cell) in byName {
      if cell.binding.isVisible { byName[name]?.isOwedInitial = !cell.observations.isEmpty || cell.query != nil }
      byName[name]?.pauseUnknown()
    }
  }

  /// The observations that have to be evaluated for the stream to catch up: those of each cell on screen that has
  /// missed something.
  var observationsToCatchUp: [Observation] {
    sorted.flatMap { _, cell in
      cell.binding.isVisible && cell.isPaused && cell.hasMissed && cell.pending?.gone == nil
        ? cell.isOwedInitial ? cell.observations : cell.observations.filter { $0.options.contains(.new) } : []
    }
  }

  /// Ends the suspension: all cells on screen receive everything again. What they have missed is told otherwise.
  mutating func endSuspension() {
    isSuspended = false
    for (name, cell) in byName where cell.binding.isVisible {
      byName[name]?.pending = nil
      byName[name]?.missed = nil
      byName[name]?.isOwedInitial = cell.isOwedInitial && cell.isPaused
    }
  }

  /// Begins a segment: the cells on screen, which are told what they missed up to a revision, remember what they miss
  /// from then on. Returns the number of the segment.
  mutating func beginSegment(at revision: Revision, result: (Query) -> QueryResult?) -> Int {
    lastSegment += 1
    for (name, cell) in byName where cell.binding.isVisible && cell.isPaused {
      byName[name]?.segment = lastSegment
      byName[name]?.pending = MissedChanges(since: DeliveredValues())
      byName[name]?.missed = cell.query.flatMap(result).map { MissedContents(shown: $0, since: revision) }
      byName[name]?.isOwedInitial = false
    }
    return lastSegment
  }

  /// Ends a segment, whose cells have been told what they missed before it; they are in `told` as they were after that,
  /// having received `delivered`. Returns true if they have missed nothing since, and receive everything again.
  mutating func endSegment(_ segment: Int, _ told: CellSet, delivered: DeliveredState) -> Bool {
    lastRefresh = max(lastRefresh, told.lastRefresh)
    for (name, cell) in byName where cell.segment == segment {
      guard let former = told[name] else { continue }
      byName[name]?.segment = nil
      byName[name]?.told += former.told - cell.told
      byName[name]?.refresh = former.refresh
      byName[name]?.refreshedAt = max(cell.refreshedAt, former.refreshedAt)
      if cell.lost == nil || former.lost?.object == cell.lost?.object { byName[name]?.lost = former.lost }
      guard let since = cell.pending, !cell.isOwedInitial else { continue }
      var pending = MissedChanges(cell.observations, in: delivered.reader)
      pending.merge(since)
      byName[name]?.pending = pending
      byName[name]?.pausedAt = delivered.revision
    }
    guard isSuspended, !byName.values.contains(where: { $0.binding.isVisible && $0.isPaused && $0.hasMissed }) else {
      return !isSuspended
    }
    endSuspension()
    for (name, cell) in byName where cell.binding.isVisible { byName[name]?.pausedAt = nil }
    return true
  }

  /// Ends a segment when it is not known whether the client receives what its cells were to be told.
  mutating func forgetSegment() {
    for (name, cell) in byName where cell.segment != nil {
      byName[name]?.segment = nil
      byName[name]?.isOwedInitial = true
    }
  }

  /// Returns what the cells on screen missed until `present`, in the order of their names; those off screen keep
  /// remembering. Nothing is counted as received yet: `encode` does that.
  mutating func catchUp(to present: DeliveredState, _ encoder: EventEncoder) -> CellUpdate {
    isSuspended = false
    var update = CellUpdate(limit: encoder.eventBytes)
    for (name, cell) in sorted where cell.binding.isVisible && cell.isPaused {
      byName[name]?.resume(as: name, at: present, encoder, &update)
    }
    return update
  }
}

/// The data that cells of one stream receive apart from the events of commits, all of it as of one revision. It is
/// bounded: what exceeds the limit is not even evaluated.
struct CellUpdate {
  /// The first states of what the cells observe.
  private(set) var initial: [Change] = []
  /// The changes that the cells missed, merged.
  private(set) var coalesced: [Change] = []
  /// The first rows of live queries, and their changes, merged.
  private(set) var queries: [QueryNotification] = []
  /// The objects that the cells lost.
  private(set) var gone: [ObserverEvent.Gone] = []
  private let limit: Int
  private var textBytes = 0

  /// Creates an empty update of at most `limit` bytes.
  init(limit: Int = .max) { self.limit = limit }

  /// The number of changes, live queries and ends.
  var count: Int { initial.count + coalesced.count + queries.count + gone.count }

  /// The cells that receive something.
  var cells: Set<String> {
    Set((initial + coalesced).map { $0.cell ?? "" }).union(queries.map { $0.cell ?? "" })
      .union(gone.map { $0.cell ?? "" })
  }

  /// True if the values are certainly longer than the limit. Then some may be missing.
  var isTooLong: Bool { textBytes > limit }

  /// True if the events are certainly no longer than the limit: JSON takes at most six bytes for one of text, and a
  /// change has little else.
  var isShort: Bool { queries.isEmpty && textBytes * 6 + initial.count * 16_384 <= limit }

  /// Adds the first states of what a cell observes.
  mutating func addInitial(_ observations: [Observation], of cell: String, in reader: any ObjectReader) {
    for observation in observations where !isTooLong { addInitial(observation.initialChange(cell: cell, in: reader)) }
  }

  /// Adds a first state.
  mutating func addInitial(_ change: Change) {
    textBytes += change.textBytes
    initial.append(change)
  }

  /// Adds what a cell missed.
  mutating func addCoalesced(_ changes: [Change]) {
    for change in changes { textBytes += change.textBytes }
    coalesced += changes
  }

  /// Adds the rows of a live query, or their changes.
  mutating func add(_ notification: QueryNotification) { queries.append(notification) }

  /// Adds an object that a cell has lost.
  mutating func add(_ lost: ObserverEvent.Gone) { gone.append(lost) }
}
