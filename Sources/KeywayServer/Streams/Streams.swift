import Dispatch
package import HTTPServer
import KeyValueModel
import KeyValueObserving
import Logging
import Store

/// The streams of all kinds, over one registry. The store publishes to them.
package struct Streams: StorePublisher {
  /// Every open stream.
  package let registry: StreamRegistry
  let objects: ObjectStreams
  let queries: QueryStreams
  let cells: CellStreams
  let journal: JournalStreams

  /// Creates the streams over a journal.
  init(_ services: StreamServices, journal: any TransactionJournal) {
    registry = StreamRegistry(services)
    objects = ObjectStreams(registry)
    queries = QueryStreams(registry)
    cells = CellStreams(registry)
    self.journal = JournalStreams(registry: registry, feed: JournalFeed(journal: journal, services: services))
  }

  /// Publishes the effects of commits to the streams that observe objects, and the growth of the journal to the streams
  /// that follow it. See `StorePublisher`.
  func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision {
    defer { journal.feed.commitsWerePublished(upTo: revision) }
    objects.forgetReplays(at: revision)
    return registry.publish(queryEvents, upTo: revision, notifying: notify)
  }
}

/// The delegate of the hub: provides the texts of `heartbeat` and `bye` and what slow readers missed, and ends what a
/// stream observed.
package final class StreamMonitor: StreamHubDelegate {
  private let store: Store
  private let streams: StreamRegistry
  private let node: (any Node)?
  private let metrics: PrometheusRegistry
  private let conditions: ConditionLog
  private let logger: Logger
  /// The queue that handles slow readers, so that the other streams of their hub thread need not wait.
  private let slowReaders = DispatchQueue(label: "keyway.slow-readers", qos: .utility)
  /// The queue that encodes long catch-ups, so that other slow readers need not wait.
  private let encodings = DispatchQueue(label: "keyway.slow-readers.encodings", qos: .utility)

  init(
    store: Store, streams: StreamRegistry, node: (any Node)? = nil, metrics: PrometheusRegistry,
    conditions: ConditionLog,
    logger: Logger
  ) {
    self.store = store
    self.streams = streams
    self.node = node
    self.metrics = metrics
    self.conditions = conditions
    self.logger = logger
  }

  /// Returns a `heartbeat` event. Its id moves the client's cursor while nothing happens.
  package func heartbeat(at position: UInt64) -> EventBytes {
    streams.services.encoder.heartbeat(at: StreamPosition(rawValue: position).revision)
  }

  /// Returns the `bye` of a stream that the server ends.
  package func closingEvent(_ reason: StreamEnd) -> EventBytes { streams.services.encoder.closingEvent(after: reason) }

  /// Remembers the state that the stream has, so that one event can later replace what it misses from now on.
  package func streamLagged(_ id: StreamID, firstMissed position: UInt64) {
    metrics.increment(.lags)
    streams.reportLag(id, firstMissed: position)
    slowReaders.async { [store, streams] in
      if streams.beginLag(ofFollower: id) { return }
      store.withPublication { streams.beginLag(id, $0) }
    }
  }

  /// Sends the stream what it missed.
  package func streamCaughtUp(_ id: StreamID) {
    slowReaders.async { [store, streams, encodings] in
      if streams.beginLag(ofFollower: id, catchesUp: true) { return }
      if let work = store.withPublication({ streams.catchUp(id, $0) }) { encodings.async { work(store, streams) } }
    }
  }

  /// Ends what the stream observed.
  package func streamEnded(_ id: StreamID, _ end: StreamEnd, isDelivered: Bool) {
    // Counted first, so that a client that finds the stream gone finds it counted.
    metrics.increment(.disconnects, ["reason": end.rawValue])
    node?.streamEnded(id)
    let cut = end == .shutdown ? nil : StreamCut(isDelivered: isDelivered)
    store.withPublication { streams.streamEnded(id, cut, &$0) }
    switch end {
    case .stalled: conditions.note(.stalled)
    case .overflow: conditions.note(.overflow)
    case .clientGone, .ended, .lifetime, .shutdown: break
    }
    logger.debug("stream ended", metadata: ["stream": "\(id.number)", "reason": "\(end.rawValue)"])
  }
}
