import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store

/// What streams share that ask for the same: it is evaluated and encoded once for all of them, and sent to one channel
/// of the hub.
protocol Topic: CommitReceiver {
  /// What makes two streams the same.
  associatedtype Key: Hashable

  var key: Key { get }
  var services: StreamServices { get }
  /// How many streams there are.
  var subscribers: Int { get set }
  /// Who reads each of them.
  var clients: [StreamID: ClientAddress] { get set }

  /// Ends what it observes.
  func unregister(_ publication: inout Publication)

  /// A stream lags no longer, or is over.
  func endLag(_ id: StreamID)
}

extension Topic {
  var cellCount: Int { 0 }
  var channel: ChannelID { ChannelID(observer.rawValue) }

  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication
  ) {
    leave(id, &contents, &publication)
  }

  /// A stream is over; after the last, so is what the topic observes.
  func leave(_ id: StreamID, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication) {
    subscribers -= 1
    if let client = clients.removeValue(forKey: id) {
      publication.observers.discharge(observer, of: QueryPayer(client))
      publication.queries.discharge(observer, of: QueryPayer(client))
    }
    endLag(id)
    guard subscribers == 0 else { return }
    unregister(&publication)
    contents.forget(self)
  }

  /// Has the streams of the channel begin to lag at a commit.
  func miss(_ revision: Revision) -> Delivery {
    .channelMisses(channel, position: StreamPosition.commit(revision).rawValue)
  }

  func overflow(_ contents: inout StreamRegistry.Contents) -> Delivery? {
    contents.forget(self)
    return .endChannel(channel, services.encoder.closingEvent(.overflow))
  }
}

extension StreamRegistry.Contents {
  /// The topic of what a stream asks for, where there is one that takes further streams.
  func topic<Found: Topic>(_ key: Found.Key) -> Found? { topics[AnyHashable(key)] as? Found }

  /// Adds a stream to a topic; the first brings the topic into the tables.
  mutating func join(_ topic: some Topic, _ id: StreamID, _ client: ClientAddress) {
    if topic.subscribers == 0 {
      topics[AnyHashable(topic.key)] = topic
      receivers[topic.observer] = topic
    }
    topic.subscribers += 1
    topic.clients[id] = client
    subscriptions[id] = topic
  }

  /// Takes a topic out of the tables. Its last streams may still be about to end, and another topic may have taken its
  /// key meanwhile.
  mutating func forget(_ topic: some Topic) {
    receivers[topic.observer] = nil
    if topics[AnyHashable(topic.key)] === topic { topics[AnyHashable(topic.key)] = nil }
  }
}
