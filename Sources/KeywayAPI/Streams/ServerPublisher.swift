internal import KeyValueModel
internal import KeyValueObserving
internal import ModelStore

/// Passes on what commits tell to the streams that observe objects, and that there is more in the journal to those that
/// follow it.
struct ServerPublisher: StorePublisher {
  let streams: StreamRegistry
  let feed: JournalFeed

  func publish(_ events: [ObserverEvent], _ queryEvents: [QueryEvent], upTo revision: Revision) -> Revision {
    defer { feed.commitsWerePublished(upTo: revision) }
    return streams.publish(events, queryEvents, upTo: revision)
  }
}
