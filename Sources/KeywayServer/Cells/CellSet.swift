import KeyValueModel
import KeyValueObserving

/// The cells of one stream by their names, and what each of them receives. Knows neither store nor hub.
struct CellSet {
  private(set) var byName: [String: Cell] = [:]
  /// Whether the stream's reader is too slow: no cell receives anything until the stream catches up.
  private(set) var isSuspended = false
  /// The number of the last event that told cells anything but what a commit did.
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

  /// How many observations its cells have, a live query counted as one.
  var observationCount: Int { byName.values.reduce(0) { $0 + $1.observations.count + ($1.query == nil ? 0 : 1) } }

  /// About how many bytes the cells take up, and what they remember while they receive nothing.
  var weight: Int { byName.values.reduce(formerBytes) { $0 + $1.weight } }
  var formerBytes: Int { byName.values.reduce(0) { $0 + ($1.former?.weight ?? 0) } }
  var pendingBytes: Int { byName.values.reduce(0) { $0 + ($1.pending?.deliveredBytes ?? 0) } }

  /// Paused cells forget what they have delivered: they receive everything anew.
  mutating func forgetDelivered() {
    for (name, cell) in byName where (cell.pending?.deliveredBytes ?? 0) > 0 && cell.pending?.gone == nil {
      byName[name]?.pending = PendingChanges(since: DeliveredValues())
      byName[name]?.isOwedInitial = true
    }
  }

  /// Has a cell remember what it misses.
  mutating func absorb(_ changes: [Change], gone: Reference?, by name: String) {
    byName[name]?.pending?.absorb(changes, gone: gone)
  }

  /// What the cells hold that is not told at once: `gates` says what of a revision they are told in spite of that.
  private func isPaused(_ name: String?, _ gates: [String: CellGate], _ revision: Revision) -> Bool {
    guard let name, byName[name]?.isPaused == true else { return false }
    return gates[name]?.way(of: revision) != .tell
  }

  // MARK: Commits

  /// Takes in what a commit did: paused cells remember it, and what the others receive comes back; nil where that is
  /// nothing. Where a stream is resumed, `gates` says which cells this concerns.
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
        // It is owed everything: only the count is of interest.
        byName[name]?.pending?.absorb([], gone: nil)
      }
    }
    for gone in event.gone where gates[gone.cell ?? ""]?.isOfFormer(revision) != true {
      empty(gone.cell ?? "", of: gone.object, at: revision)
    }
    countReceived(visible)
    return visible.isEmpty ? nil : visible
  }

  /// The object of a cell was deleted: it shows nothing.
  private mutating func empty(_ name: String, of object: Reference, at revision: Revision) {
    guard let cell = byName[name], !cell.observations.isEmpty else { return }
    byName[name]?.lost = LostObject(object: object, position: .commit(revision), observations: cell.observations)
    byName[name]?.binding.object = nil
    byName[name]?.observations = []
  }

  /// Objects of cells were deleted by a commit of which the stream misses everything: it receives that later.
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

  /// The events of an update, counted as received, as of one revision: only the last has an id. Nothing for an empty
  /// one. `isFirstOfID` says that no event before it can have had the id.
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

  /// What paused cells have missed is not known any more, with `onScreen` of those on screen: they receive everything
  /// anew.
  mutating func forgetMissed(onScreen: Bool = false) {
    // No copy for those that know it already.
    for (name, cell) in byName where cell.isPaused && !cell.isOwedInitial && (cell.binding.isVisible || !onScreen) {
      byName[name]?.isOwedInitial = true
    }
  }

  /// From now on no cell receives anything: those on screen have received `delivered`. Cells that are bound meanwhile
  /// receive nothing either.
  mutating func suspend(at delivered: DeliveredState) {
    isSuspended = true
    for name in byName.keys { byName[name]?.pause(at: delivered) }
  }

  /// The same where it is not known what those on screen have received, or where that takes too long to find out: they
  /// receive their state anew.
  mutating func suspendOwingState() {
    isSuspended = true
    for (name, cell) in byName {
      if cell.binding.isVisible { byName[name]?.isOwedInitial = !cell.observations.isEmpty || cell.query != nil }
      byName[name]?.pauseUnknown()
    }
  }

  /// What has to be worked out for the stream to catch up: of each cell on screen that has missed something.
  var observationsToCatchUp: [Observation] {
    sorted.flatMap { _, cell in
      cell.binding.isVisible && cell.isPaused && cell.hasMissed && cell.pending?.gone == nil
        ? cell.isOwedInitial ? cell.observations : cell.observations.filter { $0.options.contains(.new) } : []
    }
  }

  /// The cells receive everything again, but for those off screen. What those on screen have missed is told otherwise.
  mutating func endSuspension() {
    isSuspended = false
    for (name, cell) in byName where cell.binding.isVisible {
      byName[name]?.pending = nil
      byName[name]?.missed = nil
      byName[name]?.isOwedInitial = cell.isOwedInitial && cell.isPaused
    }
  }

  /// Has the cells on screen, which are told what they missed up to a revision, remember what they miss from then on.
  /// Returns the number of this segment.
  mutating func beginSegment(at revision: Revision, result: (Query) -> QueryResult?) -> Int {
    lastSegment += 1
    for (name, cell) in byName where cell.binding.isVisible && cell.isPaused {
      byName[name]?.segment = lastSegment
      byName[name]?.pending = PendingChanges(since: DeliveredValues())
      byName[name]?.missed = cell.query.flatMap(result).map { MissedContents(shown: $0, since: revision) }
      byName[name]?.isOwedInitial = false
    }
    return lastSegment
  }

  /// The cells of a segment have been told what they missed before it, and are in `told` as they were after that,
  /// having received `delivered`. True if they have missed nothing since, and receive everything again.
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
      var pending = PendingChanges(cell.observations, in: delivered.reader)
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

  /// Whether its client receives what the cells of a segment were to be told is not known any more.
  mutating func forgetSegment() {
    for (name, cell) in byName where cell.segment != nil {
      byName[name]?.segment = nil
      byName[name]?.isOwedInitial = true
    }
  }

  /// What the cells on screen missed until `present`, in the order of their names; those off screen go on remembering.
  /// Nothing is counted as received yet: `encode` does that.
  mutating func catchUp(to present: DeliveredState, _ encoder: EventEncoder) -> CellUpdate {
    isSuspended = false
    var update = CellUpdate(limit: encoder.eventBytes)
    for (name, cell) in sorted where cell.binding.isVisible && cell.isPaused {
      byName[name]?.resume(as: name, at: present, encoder, &update)
    }
    return update
  }
}

/// What cells of one stream receive that is not the event of one commit, all of it as of one revision. Bounded: what is
/// over the limit is not even evaluated.
struct CellUpdate {
  /// Their first states.
  private(set) var initial: [Change] = []
  /// What they missed, merged.
  private(set) var coalesced: [Change] = []
  /// First rows of live queries, and what became of them, merged.
  private(set) var queries: [QueryNotification] = []
  /// The objects that they lost.
  private(set) var gone: [ObserverEvent.Gone] = []
  private let limit: Int
  private var textBytes = 0

  /// Nothing yet, of at most so many bytes.
  init(limit: Int = .max) { self.limit = limit }

  /// How many changes, live queries and ends there are.
  var count: Int { initial.count + coalesced.count + queries.count + gone.count }

  /// The cells that receive something.
  var cells: Set<String> {
    Set((initial + coalesced).map { $0.cell ?? "" }).union(queries.map { $0.cell ?? "" })
      .union(gone.map { $0.cell ?? "" })
  }

  /// Whether the values are certainly longer than the limit. Then some may be missing.
  var isTooLong: Bool { textBytes > limit }

  /// Whether the events are certainly no longer than the limit: JSON takes at most six bytes for one of text, and a
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

  /// Adds a live query's rows, or what became of them.
  mutating func add(_ notification: QueryNotification) { queries.append(notification) }

  /// Adds an object that a cell has lost.
  mutating func add(_ lost: ObserverEvent.Gone) { gone.append(lost) }
}
