import HTTPServer
import HTTPTypes
import KeyValueModel
import ModelStore
import Synchronization

/// What streams of every kind are made with: the hub that owns their sockets, the encoder of their events, their names
/// and limits.
final class StreamServices: Sendable {
  let hub: StreamHub
  let encoder: EventEncoder
  let limits: StreamLimits
  let names: StreamNames
  private let random: @Sendable () -> UInt64
  private let notificationCount = Atomic<UInt64>(0)

  /// `random` gives unguessable numbers.
  init(hub: StreamHub, epoch: String, limits: StreamLimits, random: @escaping @Sendable () -> UInt64) {
    self.hub = hub
    self.limits = limits
    self.random = random
    encoder = EventEncoder(epoch: epoch)
    names = StreamNames(random: random)
  }

  /// The line that begins every stream: how long a client waits before it comes back, jittered so that a crowd does not
  /// come at once.
  var retryLine: [UInt8] { Array("retry: \(2000 + random() % 2000)\n".utf8) }

  /// How many changes subscribers were notified of, each subscriber counted.
  var notifications: UInt64 { notificationCount.load(ordering: .relaxed) }

  /// Counts changes that subscribers are notified of.
  func countNotifications(_ count: Int) { notificationCount.wrappingAdd(UInt64(count), ordering: .relaxed) }

  /// Where a stream begins whose client sent this cursor.
  func resumption(from cursor: String?, _ snapshot: Snapshot) -> Resumption {
    Resumption(
      cursor: cursor, epoch: encoder.epoch, oldest: snapshot.oldestResumable, present: snapshot.revision)
  }

  /// Opens a stream. Throws `too-many-streams` and `draining`.
  func open(
    _ id: StreamID? = nil, for client: ClientAddress, prelude: [UInt8], channel: ChannelID?, overflow: OverflowPolicy,
    beginning: StreamBeginning = .posted
  ) throws(Problem) -> EventStream {
    do throws(StreamHubError) {
      return try hub.open(
        id, for: client, prelude: prelude, channel: channel, overflow: overflow, beginning: beginning)
    } catch {
      throw Problem(error)
    }
  }

  /// Answers a lagging stream that has read everything else: these bytes stand for what it missed, up to a revision.
  func postCatchUp(_ bytes: [UInt8], to id: StreamID, at revision: Revision) {
    // The subscriber misses none of it: the hub queues it however long it is.
    hub.post([.catchUp(id, EventBytes(bytes), isLast: true)], position: StreamPosition.commit(revision).rawValue)
  }
}

extension Problem {
  /// Why no stream was opened.
  init(_ error: StreamHubError) {
    switch error {
    case .tooManyStreams: self.init(.tooManyStreams, "as many streams are open as the server allows")
    case .tooManyStreamsOfClient:
      self.init(
        .tooManyStreams, "as many streams of this client are open as the server allows one", status: .tooManyRequests)
    case .draining: self.init(.draining, "the server is about to stop")
    }
  }
}
