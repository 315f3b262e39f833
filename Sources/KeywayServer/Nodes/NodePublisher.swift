import KeyValueModel
import KeyValueObserving
import Store

/// Passes commits on to the streams, and then to the requests that wait for them.
struct NodePublisher: StorePublisher {
  let streams: Streams
  let node: Node

  func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision {
    defer { node.reached(revision) }
    return streams.publish(queryEvents, upTo: revision, notifying: notify)
  }
}
