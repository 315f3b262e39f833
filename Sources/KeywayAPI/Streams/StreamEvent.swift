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

  /// What a commit did to observations.
  init(_ event: ObserverEvent) {
    revision = event.revision
    writer = event.writer
    changes = event.changes
    gone = event.gone
  }
}
