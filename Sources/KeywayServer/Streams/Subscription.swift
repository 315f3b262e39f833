import HTTPServer
import KeyValueModel
import KeyValueObserving
package import Store

/// What a stream is subscribed to; streams that ask for the same may share one.
///
/// A kind of stream is a subscription, and mostly a `StreamOpening` that begins it. The registry calls a subscription
/// only while it holds its own lock, which guards what the subscription remembers; where a publication is passed, its
/// lock is held too.
protocol Subscription: AnyObject {
  /// Whether a client has ended the stream, whose connection is about to.
  var isOver: Bool { get set }

  /// The name of a stream, given that of its connection.
  func name(of id: StreamID) -> StreamID

  /// Adds what `GET /v1/streams` shows of a stream besides its name.
  func describe(in body: inout JSONObject)

  /// Adds what `GET /v1/streams/{stream}` shows besides that.
  func describeDetails(in body: inout JSONObject)

  /// A stream is over, no matter which side ended it. `cut` says how its connection ended, where its client may come
  /// back to it.
  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication)
}

/// How the connection of a stream ended whose client may come back to it.
struct StreamCut: Hashable, Sendable {
  /// Whether the other side had received everything that it was sent.
  let isDelivered: Bool
}

extension Subscription {
  // Those that several streams may share go on until their connections have ended.
  var isOver: Bool {
    get { false }
    set {}
  }

  func name(of id: StreamID) -> StreamID { id }

  func describeDetails(in body: inout JSONObject) {}
}

/// Work that is done for a lagging stream while others write. It is called with no lock held.
package typealias CatchUpWork = @Sendable (_ store: Store, _ registry: StreamRegistry) -> Void

/// A subscription that the store notifies of commits, as one observer. When a slow reader has read on, it is brought to
/// the published state.
protocol CommitReceiver: Subscription {
  /// Its name in the index of observers and among the watchers of live queries.
  var observer: ObserverID { get }

  /// How much its streams observe, each registration counted for each stream.
  var observationCount: Int { get }

  /// The live queries that it watches.
  var queries: [Query] { get }

  /// How many cells it has.
  var cellCount: Int { get }

  /// What the client wants to be given back with every event of a live query, the query of a cell where it has cells.
  func context(ofCell cell: String?) -> String?

  /// What one revision delivers to its streams; nil where that is nothing.
  func delivery(of event: StreamEvent, _ contents: inout StreamRegistry.Contents) -> Delivery?

  /// Has its streams miss what one commit did, because that is longer than an event may be, or takes longer to work out
  /// than the commit may: they receive it later, merged.
  func missed(_ event: ObserverEvent) -> Delivery

  /// Ends its streams, because one commit did more than an event may hold or a filter has come to cost too much.
  func overflow(_ contents: inout StreamRegistry.Contents) -> Delivery?

  /// The reader of a stream is too slow, and misses what comes from `firstMissed` on: remembers what it has.
  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication)

  /// A lagging stream has read what was queued for it: posts what it missed, as `Delivery.catchUp`. What takes long to
  /// work out or to encode comes back, to be done while others write; the stream then goes on lagging behind the
  /// present.
  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork?
}

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

  /// A stream is over; after the last, so is what the topic observes.
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

extension QueryPayer {
  /// A client pays for the live queries that its streams watch.
  init(_ client: ClientAddress) { self.init(client.high, client.low) }
}
