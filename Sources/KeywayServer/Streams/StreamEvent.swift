import KeyValueModel
import KeyValueObserving

/// What one revision delivers to one stream: changes, what became of live queries, and objects that are gone, in this
/// order.
struct StreamEvent {
  /// The revision.
  let revision: Revision
  /// Who wrote, where it was said.
  var writer: String?
  /// Changes of what is observed.
  var changes: [Change] = []
  /// Live queries, each on its own.
  var queries: [QueryNotification] = []
  /// Objects that cells, or the stream as a whole, have lost.
  var gone: [ObserverEvent.Gone] = []

  /// Whether there is nothing to deliver.
  var isEmpty: Bool { changes.isEmpty && queries.isEmpty && gone.isEmpty }

  /// Nothing yet.
  init(revision: Revision, writer: String? = nil) {
    self.revision = revision
    self.writer = writer
  }

  /// Adds what else the same revision delivers.
  mutating func add(_ other: StreamEvent) {
    changes += other.changes
    queries += other.queries
    gone += other.gone
  }

  /// The part that is for some cells.
  func filtered(_ isIncluded: (_ cell: String?) -> Bool) -> StreamEvent {
    var part = StreamEvent(revision: revision, writer: writer)
    part.changes = changes.filter { isIncluded($0.cell) }
    part.queries = queries.filter { isIncluded($0.cell) }
    part.gone = gone.filter { isIncluded($0.cell) }
    return part
  }

  /// What a commit did to observations.
  init(_ event: ObserverEvent) {
    revision = event.revision
    writer = event.writer
    changes = event.changes
    gone = event.gone
  }
}
