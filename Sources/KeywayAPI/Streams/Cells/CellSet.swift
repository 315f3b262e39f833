import KeyValueModel
import KeyValueObserving

/// The cells of one stream by their names, and what each of them receives. Knows neither store nor hub.
struct CellSet {
  private(set) var cells: [String: Cell] = [:]
  /// Whether the stream's reader is too slow: no cell receives anything until the stream catches up.
  private(set) var isSuspended = false

  subscript(name: String) -> Cell? {
    get { cells[name] }
    set { cells[name] = newValue }
  }

  var count: Int { cells.count }

  /// The cells in the order of their names.
  var sorted: [(key: String, value: Cell)] { cells.sorted { $0.key < $1.key } }

  /// How many observations its cells have, a live query counted as one.
  var observationCount: Int { cells.values.reduce(0) { $0 + $1.observations.count + ($1.query == nil ? 0 : 1) } }

  private func isPaused(_ name: String?) -> Bool { name.map { cells[$0]?.isPaused ?? false } ?? false }

  // MARK: Commits

  /// Takes in what a commit did: paused cells remember it, and what the others receive comes back; nil where that is
  /// nothing.
  mutating func visiblePart(of event: StreamEvent) -> StreamEvent? {
    let goneCells = Dictionary(grouping: event.gone, by: \.cell)
    let pausedChanges = Dictionary(grouping: event.changes.filter { isPaused($0.cell) }, by: \.cell)
    var hidden: Set<String> = []
    for (name, cell) in cells where cell.isPaused {
      let changes = pausedChanges[name] ?? []
      let gone = goneCells[name]?.first?.object
      guard !changes.isEmpty || gone != nil else { continue }
      hidden.insert(name)
      cells[name]?.pending?.absorb(changes, gone: gone)
    }
    var visible = StreamEvent(revision: event.revision, writer: event.writer)
    visible.changes = event.changes.filter { !hidden.contains($0.cell ?? "") }
    visible.gone = event.gone.filter { !hidden.contains($0.cell ?? "") }
    for notification in event.queries {
      let name = notification.cell ?? ""
      if !isPaused(name) {
        visible.queries.append(notification)
      } else if cells[name]?.missed != nil {
        cells[name]?.missed?.count += 1
      } else {
        // It is owed everything: only the count is of interest.
        cells[name]?.pending?.absorb([], gone: nil)
      }
    }
    for gone in event.gone { empty(gone.cell ?? "", of: gone.object, at: event.revision) }
    countReceived(visible)
    return visible.isEmpty ? nil : visible
  }

  /// The object of a cell was deleted: it shows nothing.
  private mutating func empty(_ name: String, of object: Reference, at revision: Revision) {
    cells[name]?.lost = (object, .commit(revision))
    cells[name]?.binding.object = nil
    cells[name]?.observations = []
  }

  /// Counts an event for the cells that receive it: one for the changes, one for each live query, one for an end.
  private mutating func countReceived(_ event: StreamEvent) {
    let names = Set(event.changes.map { $0.cell ?? "" }).union(event.gone.map { $0.cell ?? "" })
    for name in names { cells[name]?.told += 1 }
    for notification in event.queries { cells[notification.cell ?? ""]?.told += 1 }
  }

  /// The events of an update, counted as received, as of one revision: only the last has an id. Nothing for an empty
  /// one.
  mutating func encode(_ update: CellUpdate, at revision: Revision, _ encoder: EventEncoder) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = StreamEvent(revision: revision)
    rest.changes = update.coalesced
    rest.queries = update.queries
    rest.gone = update.gone
    if !update.initial.isEmpty {
      encoder.appendChange(
        update.initial, revision: revision, isInitial: true, hasID: rest.isEmpty, to: &bytes)
      for name in Set(update.initial.map { $0.cell ?? "" }) { cells[name]?.told += 1 }
    }
    encoder.append(rest, to: &bytes)
    countReceived(rest)
    return bytes
  }

  // MARK: Slow readers

  /// From now on no cell receives anything: those on screen have received `delivered`. So will cells that are bound
  /// meanwhile.
  mutating func suspend(at delivered: DeliveredState) {
    isSuspended = true
    for name in cells.keys { cells[name]?.pause(at: delivered) }
  }

  /// What the cells on screen missed until `present`, in the order of their names; those off screen go on remembering.
  /// Nothing is counted as received yet: `encode` does that.
  mutating func catchUp(to present: DeliveredState, _ encoder: EventEncoder) -> CellUpdate {
    isSuspended = false
    var update = CellUpdate()
    for (name, cell) in sorted where cell.binding.isVisible && cell.isPaused {
      cells[name]?.resume(as: name, at: present, encoder, &update)
    }
    return update
  }
}
