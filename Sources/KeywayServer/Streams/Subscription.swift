import HTTPServer
import KeyValueModel
import KeyValueObserving
package import Store

/// What a stream is subscribed to; streams that ask for the same may share one.
///
/// A kind of stream is a folder with a subscription, and mostly with a `StreamOpening` that begins it. The registry
/// calls a subscription only while it holds its own lock, which guards what the subscription remembers; where a
/// publication is passed, its lock is held too.
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

/// A subscription to what is published: when a slow reader has read on, it is brought to the published state.
protocol PublishedSubscription: Subscription {
  /// The reader of a stream is too slow, and misses what comes from `firstMissed` on: remembers what it has.
  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication)

  /// A lagging stream has read what was queued for it: posts what it missed, as `Delivery.catchUp`. What takes long to
  /// work out or to encode comes back, to be done while others write; the stream then goes on lagging behind the
  /// present.
  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork?
}

/// Work that is done for a lagging stream while others write. It is called with no lock held.
package typealias CatchUpWork = @Sendable (_ store: Store, _ registry: StreamRegistry) -> Void

/// A subscription that knows by itself how far each of its streams is, and needs no publication for a slow reader.
protocol SelfPacedSubscription: Subscription {
  /// The reader of a stream is too slow, and misses what comes from `firstMissed` on.
  func beginLag(_ id: StreamID, firstMissed: StreamPosition)

  /// A lagging stream has read what was queued for it: posts, in its turn, what it missed.
  func catchUp(_ id: StreamID)
}

/// A subscription that the store notifies of commits, as one observer.
protocol CommitReceiver: PublishedSubscription {
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
}
