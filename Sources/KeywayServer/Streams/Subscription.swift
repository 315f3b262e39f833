import HTTPServer
import KeyValueModel
import KeyValueObserving
package import Store

/// The subscription of a stream. Streams with the same request may share one.
///
/// A kind of stream is a subscription, and usually a `StreamOpening` that begins it. The registry calls a subscription
/// only while it holds its own lock, which guards the state of the subscription. If a publication is passed, its lock
/// is held too.
protocol Subscription: AnyObject {
  /// True if a client has ended the stream, and its connection is about to end.
  var hasEnded: Bool { get set }

  /// Returns the name of a stream, given that of its connection.
  func name(of id: StreamID) -> StreamID

  /// Adds the members that `GET /v1/streams` shows of a stream besides its name.
  func describe(in body: inout JSONObject)

  /// Adds the members that `GET /v1/streams/{stream}` shows besides those.
  func describeDetails(in body: inout JSONObject)

  /// Handles the end of a stream, whichever side ended it. `cut` tells how its connection ended, if its client may
  /// resume the stream.
  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication)
}

/// The end of the connection of a stream that its client may resume.
struct StreamCut: Hashable, Sendable {
  /// True if the client had received everything that was sent to it.
  let isDelivered: Bool
}

extension Subscription {
  // A subscription that several streams may share goes on until their connections have ended.
  var hasEnded: Bool {
    get { false }
    set {}
  }

  func name(of id: StreamID) -> StreamID { id }

  func describeDetails(in body: inout JSONObject) {}
}

/// Work for a lagging stream that does not keep writers waiting. It is called with no lock held.
package typealias CatchUpWork = @Sendable (_ store: Store, _ registry: StreamRegistry) -> Void

/// A subscription that the store notifies of commits, as one observer. When a slow reader has caught up with reading,
/// it is brought to the published state.
protocol CommitReceiver: Subscription {
  /// Its name in the index of observers and among the watchers of live queries.
  var observer: ObserverID { get }

  /// The number of observations, each registration counted once for each stream.
  var observationCount: Int { get }

  /// The live queries that it watches.
  var queries: [Query] { get }

  /// The number of its cells.
  var cellCount: Int { get }

  /// Returns the text of the client that every event of a live query repeats. If the subscription has cells, the live
  /// query of a cell.
  func context(ofCell cell: String?) -> String?

  /// Returns the delivery of one revision to its streams, or nil if there is nothing to deliver.
  func delivery(of event: StreamEvent, _ contents: inout StreamRegistry.Contents) -> Delivery?

  /// Makes its streams miss the effects of one commit, because they are longer than an event may be, or take longer to
  /// evaluate than they may. The streams receive them later, merged.
  func missed(_ event: ObserverEvent) -> Delivery

  /// Ends its streams, because one commit had more effects than an event may hold, or a filter now costs too much.
  func overflow(_ contents: inout StreamRegistry.Contents) -> Delivery?

  /// Remembers the state of a stream whose reader is too slow, and misses everything from `firstMissed` on.
  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication)

  /// Posts what a lagging stream missed, as `Delivery.catchUp`, when it has read everything that was queued. Work that
  /// takes long, to evaluate or to encode, is returned, to be done without the lock. The stream then goes on lagging
  /// behind the present state.
  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork?
}

/// A subscription that streams with the same request share. It is evaluated and encoded once for all of them, and sent
/// to one channel of the hub.
protocol Topic: CommitReceiver {
  /// The identity of a topic: streams with equal keys share it.
  associatedtype Key: Hashable

  var key: Key { get }
  var services: StreamServices { get }
  /// The number of streams.
  var subscribers: Int { get set }
  /// The client of each stream.
  var clients: [StreamID: ClientAddress] { get set }

  /// Ends what it observes.
  func unregister(_ publication: inout Publication)

  /// Forgets the lag of a stream that no longer lags, or has ended.
  func endLag(_ id: StreamID)
}

extension Topic {
  var cellCount: Int { 0 }
  var channel: ChannelID { ChannelID(observer.rawValue) }

  /// Removes a stream that has ended. After the last one, ends what the topic observes.
  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication
  ) {
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

  /// Returns the delivery that makes the streams of the channel begin to lag at a commit.
  func miss(_ revision: Revision) -> Delivery {
    .channelMisses(channel, position: StreamPosition.commit(revision).rawValue)
  }

  func overflow(_ contents: inout StreamRegistry.Contents) -> Delivery? {
    contents.forget(self)
    return .endChannel(channel, services.encoder.closingEvent(.overflow))
  }
}

extension StreamRegistry.Contents {
  /// Returns the topic for a request, or nil if there is none that accepts further streams.
  func topic<Found: Topic>(_ key: Found.Key) -> Found? { topics[AnyHashable(key)] as? Found }

  /// Adds a stream to a topic. The first stream adds the topic to the tables.
  mutating func join(_ topic: some Topic, _ id: StreamID, _ client: ClientAddress) {
    if topic.subscribers == 0 {
      topics[AnyHashable(topic.key)] = topic
      receivers[topic.observer] = topic
    }
    topic.subscribers += 1
    topic.clients[id] = client
    subscriptions[id] = topic
  }

  /// Removes a topic from the tables. Its last streams may still be about to end, and another topic may have taken its
  /// key meanwhile.
  mutating func forget(_ topic: some Topic) {
    receivers[topic.observer] = nil
    if topics[AnyHashable(topic.key)] === topic { topics[AnyHashable(topic.key)] = nil }
  }
}

extension QueryPayer {
  /// Creates the payer of the live queries that a client's streams watch.
  init(_ client: ClientAddress) { self.init(client.high, client.low) }
}
