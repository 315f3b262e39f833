internal import HTTPServer
internal import KeyValueModel
internal import KeyValueObserving

/// A stream with cells: one observer whose observations come and go.
final class CellStream {
  /// Known once the hub has opened the stream, before anybody else can find it.
  var id: StreamID?
  let name: String
  let observer: ObserverID
  var cells: [String: Cell] = [:]
  /// Whether its reader is too slow: no cell is told anything until it is resumed.
  var isSuspended = false

  init(name: String, observer: ObserverID) {
    self.name = name
    self.observer = observer
  }

  /// How many observations its cells have, a live query counted as one.
  var observationCount: Int { cells.values.reduce(0) { $0 + $1.observations.count + ($1.query == nil ? 0 : 1) } }

  /// Takes in what a commit did: cells off screen, and all of a suspended stream, remember it, and what the others are to
  /// be told comes back.
  func sift(_ event: StreamEvent) -> StreamEvent? {
    let goneCells = Dictionary(grouping: event.gone, by: \.cell)
    var hidden: Set<String> = []
    let hiddenChanges = Dictionary(grouping: event.changes.lazy.filter { self.isHidden($0.cell) }, by: \.cell)
    for (name, cell) in cells where cell.pending != nil {
      let changes = hiddenChanges[name] ?? []
      let gone = goneCells[name]?.first?.object
      guard !changes.isEmpty || gone != nil else { continue }
      hidden.insert(name)
      cells[name]?.pending?.absorb(changes, gone: gone)
    }
    var told = StreamEvent(revision: event.revision, writer: event.writer)
    told.changes = event.changes.filter { !hidden.contains($0.cell ?? "") }
    told.gone = event.gone.filter { !hidden.contains($0.cell ?? "") }
    for news in event.queries {
      if isHidden(news.cell) {
        if cells[news.cell ?? ""]?.missed != nil {
          cells[news.cell ?? ""]?.missed?.count += 1
        } else {
          // It is owed everything: only the count is of interest.
          cells[news.cell ?? ""]?.pending?.absorb([], gone: nil)
        }
      } else {
        told.queries.append(news)
      }
    }
    for gone in event.gone { empty(gone.cell ?? "", of: gone.object, at: event.revision) }
    count(told)
    return told.isEmpty ? nil : told
  }

  private func isHidden(_ name: String?) -> Bool { name.map { cells[$0]?.pending != nil } ?? false }

  /// The object of a cell was deleted: it shows nothing.
  private func empty(_ name: String, of object: Reference, at revision: Revision) {
    cells[name]?.lost = (object, .commit(revision))
    cells[name]?.binding.object = nil
    cells[name]?.observations = []
  }

  /// Counts an event for the cells that it tells something: one for the changes, one for each live query, one for an end.
  func count(_ event: StreamEvent) {
    let names = Set(event.changes.map { $0.cell ?? "" }).union(event.gone.map { $0.cell ?? "" })
    for name in names { cells[name]?.told += 1 }
    for news in event.queries { cells[news.cell ?? ""]?.told += 1 }
  }
}
