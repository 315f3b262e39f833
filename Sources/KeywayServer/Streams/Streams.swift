import KeyValueModel
import KeyValueObserving
import Store

/// Streams of all kinds, put together over one registry. The store publishes to them.
struct Streams: StorePublisher {
  /// Every open stream.
  let registry: StreamRegistry
  let objects: ObjectStreams
  let queries: QueryStreams
  let cells: CellStreams
  let journal: JournalStreams

  /// Streams over a journal.
  init(_ services: StreamServices, journal: any TransactionJournal) {
    registry = StreamRegistry(services)
    objects = ObjectStreams(registry)
    queries = QueryStreams(registry)
    cells = CellStreams(registry)
    self.journal = JournalStreams(registry, JournalFeed(journal: journal, services: services))
  }

  /// Passes on what commits did to the streams that observe objects, and that the journal has grown to those that
  /// follow it; see `StorePublisher`.
  func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision {
    defer { journal.commitsWerePublished(upTo: revision) }
    objects.forgetReplays(at: revision)
    return registry.publish(queryEvents, upTo: revision, notifying: notify)
  }
}
