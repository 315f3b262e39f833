package import HTTPServer
package import KeyValueModel
package import KeyValueObserving
internal import Locking
package import ModelStore

/// Every open stream, what it observes, and the way of events from the store to the hub.
///
/// `contents` is guarded by its lock, which is only taken while the publication's lock is held or with no other: methods
/// that register take the publication that their caller has locked, so that what a stream is told first and what it is
/// told next belong together.
package final class StreamRegistry: StorePublisher, Sendable {
  struct Contents {
    var topics: [Topic.Key: Topic] = [:]
    var topicsByObserver: [ObserverID: Topic] = [:]
    var streams: [StreamID: Member] = [:]
    var cellStreams: [ObserverID: CellStream] = [:]
    var nextObserver: UInt64 = 1
    var toldChanges: UInt64 = 0

    mutating func makeObserver() -> ObserverID {
      defer { nextObserver += 1 }
      return ObserverID(nextObserver)
    }
  }

  /// What a stream is.
  enum Member {
    /// One of the streams of a topic, and the secret part of its name.
    case topic(Topic, secret: UInt64)
    /// A stream that only tells how its object ended: it observes nothing.
    case over(Topic.Key, secret: UInt64)
    /// A stream with cells.
    case cells(CellStream)
  }

  /// How many streams, cells and observations there are.
  package struct Census: Hashable, Sendable {
    /// Open streams of every sort.
    package var streams = 0
    /// Cells, bound or not.
    package var cells = 0
    /// What is observed, each registration counted.
    package var observations = 0
    /// Changes told so far, each stream counted.
    package var notifications: UInt64 = 0
  }

  let hub: StreamHub
  let encoder: EventEncoder
  let limits: StreamLimits
  let random: @Sendable () -> UInt64
  let contents = Locked(Contents())

  /// A registry without streams. `random` gives unguessable numbers: names of streams and the jitter of `retry:` come
  /// from it.
  package init(hub: StreamHub, epoch: String, limits: StreamLimits, random: @escaping @Sendable () -> UInt64) {
    self.hub = hub
    self.limits = limits
    self.random = random
    encoder = EventEncoder(epoch: epoch)
  }

  /// Counts everything.
  package var census: Census {
    contents.withLock { contents in
      var census = Census()
      census.streams = contents.streams.count
      census.notifications = contents.toldChanges
      for topic in contents.topics.values { census.observations += topic.members * topic.observations.count }
      for stream in contents.cellStreams.values {
        census.cells += stream.cells.count
        census.observations += stream.observationCount
      }
      return census
    }
  }

  /// Tells the streams what a batch of commits did; see `StorePublisher`.
  package func publish(_ events: [ObserverEvent], upTo revision: Revision) {
    let deliveries = contents.withLock { contents in
      events.compactMap { delivery(of: $0, &contents) }
    }
    hub.post(deliveries, position: revision)
  }

  private func delivery(of event: ObserverEvent, _ contents: inout Contents) -> Delivery? {
    if let topic = contents.topicsByObserver[event.observer] {
      contents.toldChanges += UInt64(event.changes.count * topic.members)
      if event.isOverflown { return .endChannel(topic.channel, farewell("overflow")) }
      let bytes = encoded(event)
      guard !event.gone.isEmpty else { return .channel(topic.channel, bytes) }
      forget(topic, &contents)
      return .endChannel(topic.channel, bytes)
    }
    guard let stream = contents.cellStreams[event.observer], let id = stream.id else { return nil }
    if event.isOverflown { return .endStream(id, farewell("overflow")) }
    guard let told = stream.sift(event) else {
      return nil
    }
    contents.toldChanges += UInt64(told.changes.count)
    return .stream(id, encoded(told))
  }

  func encoded(_ event: ObserverEvent) -> EventBytes {
    var bytes: [UInt8] = []
    encoder.append(event, to: &bytes)
    return EventBytes(bytes)
  }

  /// A stream is over, whoever ended it: so are its cells and observations.
  package func streamEnded(_ id: StreamID, _ publication: inout Publication) {
    contents.withLock { contents in
      switch contents.streams.removeValue(forKey: id) {
      case .topic(let topic, _):
        topic.members -= 1
        guard topic.members == 0 else { return }
        publication.observers.remove(topic.observer)
        forget(topic, &contents)
      case .cells(let stream):
        publication.observers.remove(stream.observer)
        contents.cellStreams[stream.observer] = nil
      case .over, nil: return
      }
    }
  }

  /// Takes a topic out of the tables. Its last streams may still be about to end, and another topic may have taken its
  /// key meanwhile.
  private func forget(_ topic: Topic, _ contents: inout Contents) {
    contents.topicsByObserver[topic.observer] = nil
    if contents.topics[topic.key] === topic { contents.topics[topic.key] = nil }
  }

  /// The line that tells a client how long to wait before it comes back, jittered so that a crowd does not come at once.
  var retryLine: String { "retry: \(2000 + random() % 2000)\n" }
}
