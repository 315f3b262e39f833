import KeyValueModel
import KeyValueObserving
import ModelStore

/// Passes on what commits did to the streams that observe objects, and that there is more in the journal to those that
/// follow it.
struct ServerPublisher: StorePublisher {
  let streams: StreamRegistry
  let objects: ObjectStreams
  let feed: JournalFeed

  func publish(_ events: [ObserverEvent], _ queryEvents: [QueryEvent], upTo revision: Revision) -> Revision {
    defer { feed.commitsWerePublished(upTo: revision) }
    objects.forgetReplays(at: revision)
    return streams.publish(events, queryEvents, upTo: revision)
  }
}
