internal import HTTPServer
internal import KeyValueModel
internal import KeyValueObserving

/// A live query that is a stream of its own. Streams that ask for the same share one topic: it is encoded once for all.
final class QueryTopic {
  /// What makes two streams the same.
  struct Key: Hashable {
    let query: Query
    let context: EchoedText?
  }

  let key: Key
  let observer: ObserverID
  let channel: ChannelID
  /// How many streams there are.
  var members = 0
  /// The first event as it was encoded for the last revision at which somebody came.
  var initialEvent: (revision: Revision, bytes: [UInt8])?
  /// How many contents were told.
  var told = 0
  /// What those have that miss what is told, because their readers are too slow; and what had been told by then.
  private var lagging: [StreamID: (missed: MissedContents, told: Int)] = [:]

  init(key: Key, observer: ObserverID) {
    self.key = key
    self.observer = observer
    channel = ChannelID(observer.rawValue)
  }

  /// A stream misses what is told from now on, besides what it has missed already.
  func beginLag(_ id: StreamID, missed: MissedContents) { lagging[id] = (missed, told) }

  /// A stream lags no longer, or is over.
  func endLag(_ id: StreamID) { lagging[id] = nil }

  /// What a stream has missed; nil where it does not lag.
  func missed(by id: StreamID) -> MissedContents? {
    guard let entry = lagging[id] else { return nil }
    var missed = entry.missed
    missed.count += told - entry.told
    return missed
  }
}
