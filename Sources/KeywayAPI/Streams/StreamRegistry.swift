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
    var queryTopics: [QueryTopic.Key: QueryTopic] = [:]
    var queryTopicsByObserver: [ObserverID: QueryTopic] = [:]
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
    /// One of the streams of a live query, and the secret part of its name.
    case query(QueryTopic, secret: UInt64)
    /// A stream that only tells how its object ended: it observes nothing.
    case over(Topic.Key, secret: UInt64)
    /// A stream with cells.
    case cells(CellStream)
    /// A stream that follows the journal: `JournalFeed` knows how far.
    case journal(secret: UInt64)
  }

  /// How many streams, cells and observations there are.
  package struct Counts: Hashable, Sendable {
    /// Open streams of every sort.
    package var streams = 0
    /// Cells, bound or not.
    package var cells = 0
    /// Different live queries that are watched.
    package var queries = 0
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
  /// Streams that have said that they miss events, and since which, before that is dealt with. Taken with no other lock.
  let lagReports = Locked<[StreamID: StreamPosition]>([:])
  /// What streams of one object were told that ended, for those that come back. Taken with no other lock but the
  /// publication's.
  let replays: Locked<BoundedCache<TopicReplay.Key, TopicReplay>>

  /// A registry without streams. `random` gives unguessable numbers: names of streams and the jitter of `retry:` come
  /// from it.
  package init(hub: StreamHub, epoch: String, limits: StreamLimits, random: @escaping @Sendable () -> UInt64) {
    self.hub = hub
    self.limits = limits
    self.random = random
    encoder = EventEncoder(epoch: epoch)
    replays = Locked(BoundedCache(weightLimit: limits.resumedBytes))
  }

  /// Counts everything.
  package var counts: Counts {
    contents.withLock { contents in
      var counts = Counts()
      counts.streams = contents.streams.count
      counts.notifications = contents.toldChanges
      for topic in contents.topics.values { counts.observations += topic.members * topic.observations.count }
      var queries: Set<Query> = []
      for topic in contents.queryTopics.values {
        counts.observations += topic.members
        queries.insert(topic.key.query)
      }
      for stream in contents.cellStreams.values {
        counts.cells += stream.cells.count
        queries.formUnion(stream.cells.values.lazy.compactMap(\.query))
        counts.observations += stream.observationCount
      }
      counts.queries = queries.count
      return counts
    }
  }

  /// Tells the streams what a batch of commits did; see `StorePublisher`.
  package func publish(
    _ events: [ObserverEvent], _ queryEvents: [QueryEvent], upTo revision: Revision
  ) -> Revision {
    // Asked before the reports are looked at: whoever missed something up to here has said so by now.
    let settled = StreamPosition(rawValue: hub.settledPosition).revision
    forgetReplays(at: revision)
    let firstMissed = lagReports.withLock { $0.values.min() }
    let deliveries = contents.withLock { contents in
      queryEvents.isEmpty
        ? events.compactMap { delivery(of: $0, &contents) } : self.deliveries(of: events, queryEvents, &contents)
    }
    hub.post(deliveries, position: StreamPosition.commit(revision).rawValue)
    return min(settled, firstMissed?.lastTold ?? settled)
  }

  func delivery(of event: ObserverEvent, _ contents: inout Contents) -> Delivery? {
    guard let topic = contents.topicsByObserver[event.observer] else {
      guard let stream = contents.cellStreams[event.observer] else { return nil }
      if event.hasOverflowed { return stream.id.map { .endStream($0, farewell("overflow")) } }
      return delivery(of: StreamEvent(event), to: stream, &contents)
    }
    contents.toldChanges += UInt64(event.changes.count * topic.members)
    if event.hasOverflowed { return .endChannel(topic.channel, farewell("overflow")) }
    topic.lagging.absorb(event)
    let bytes = encoded(StreamEvent(event))
    guard !event.gone.isEmpty else { return .channel(topic.channel, bytes) }
    forget(topic, &contents)
    return .endChannel(topic.channel, bytes)
  }

  /// What a commit tells a stream with cells.
  func delivery(of event: StreamEvent, to stream: CellStream, _ contents: inout Contents) -> Delivery? {
    guard let id = stream.id, let told = stream.sift(event) else { return nil }
    contents.toldChanges += UInt64(told.changes.count + told.queries.count)
    return .stream(id, encoded(told))
  }

  func encoded(_ event: StreamEvent) -> EventBytes {
    var bytes: [UInt8] = []
    encoder.append(event, to: &bytes)
    return EventBytes(bytes, position: StreamPosition.commit(event.revision).rawValue)
  }

  /// A stream is over, whoever ended it: so are its cells and observations.
  package func streamEnded(_ id: StreamID, _ publication: inout Publication) {
    lagReports.withLock { $0[id] = nil }
    contents.withLock { contents in
      switch contents.streams.removeValue(forKey: id) {
      case .topic(let topic, _):
        topic.members -= 1
        topic.lagging.remove(id)
        guard topic.members == 0 else { return }
        publication.observers.remove(topic.observer)
        forget(topic, &contents)
      case .query(let topic, _):
        topic.members -= 1
        topic.endLag(id)
        guard topic.members == 0 else { return }
        publication.queries.remove(topic.observer)
        forget(topic, &contents)
      case .cells(let stream):
        publication.observers.remove(stream.observer)
        publication.queries.remove(stream.observer)
        contents.cellStreams[stream.observer] = nil
      case .over, .journal, nil: return
      }
    }
  }

  /// Takes a topic out of the tables. Its last streams may still be about to end, and another topic may have taken its
  /// key meanwhile.
  private func forget(_ topic: Topic, _ contents: inout Contents) {
    contents.topicsByObserver[topic.observer] = nil
    if contents.topics[topic.key] === topic { contents.topics[topic.key] = nil }
  }

  /// The same for a live query.
  func forget(_ topic: QueryTopic, _ contents: inout Contents) {
    contents.queryTopicsByObserver[topic.observer] = nil
    if contents.queryTopics[topic.key] === topic { contents.queryTopics[topic.key] = nil }
  }

  /// The line that tells a client how long to wait before it comes back, jittered so that a crowd does not come at once.
  var retryLine: String { "retry: \(2000 + random() % 2000)\n" }
}
