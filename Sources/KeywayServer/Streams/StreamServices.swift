import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Synchronization

/// What streams of every kind are made with: the hub that owns their sockets, the encoder of their events, their names
/// and limits.
final class StreamServices: Sendable {
  let hub: StreamHub
  let ledger: MemoryLedger
  let encoder: EventEncoder
  let limits: StreamLimits
  let names: StreamNames
  private let random: @Sendable () -> UInt64
  /// Seconds, which only grow.
  let now: @Sendable () -> UInt64
  private let notificationCount = Atomic<UInt64>(0)

  /// Names begin with `mark`; `random` gives unguessable numbers, and `now` the seconds by which streams age that were
  /// cut.
  init(
    hub: StreamHub, ledger: MemoryLedger = MemoryLedger(limit: .max, clientLimit: .max), epoch: String,
    limits: StreamLimits, mark: String = "",
    now: @escaping @Sendable () -> UInt64 = { Identifiers.monotonicSeconds },
    random: @escaping @Sendable () -> UInt64
  ) {
    self.now = now
    self.hub = hub
    self.ledger = ledger
    self.limits = limits
    self.random = random
    encoder = EventEncoder(epoch: epoch, eventBytes: limits.eventBytes)
    names = StreamNames(mark: mark, random: random)
  }

  /// Reserves what a client's stream takes up besides its events; nil where that is not worth counting. Throws
  /// `overloaded`.
  func reserve(_ bytes: Int, for client: ClientAddress) throws(Problem) -> MemoryReservation? {
    guard bytes > MemoryLedger.uncountedBytes else { return nil }
    do throws(MemoryRefusal) {
      return try ledger.reserve(bytes, for: client, .streams)
    } catch {
      throw Problem(error)
    }
  }

  /// The line that begins every stream, with room for what follows: how long a client waits before it comes back,
  /// jittered so that a crowd does not come at once.
  func prelude() -> EventText {
    var text = encoder.text(limit: .max)
    text.append("retry: \(2000 + random() % 2000)\n".utf8)
    return text
  }

  /// The first event of a stream is kept for the next that asks for the same, where it is no longer than this.
  let keptEventBytes = 65_536

  /// How many changes subscribers were notified of, each subscriber counted.
  var notifications: UInt64 { notificationCount.load(ordering: .relaxed) }

  /// Counts changes that subscribers are notified of.
  func countNotifications(_ count: Int) { notificationCount.wrappingAdd(UInt64(count), ordering: .relaxed) }

  /// Where a stream begins whose client sent this cursor.
  func resumption(from cursor: String?, _ snapshot: Snapshot) -> Resumption {
    Resumption(
      cursor: cursor, epoch: encoder.epoch, oldest: snapshot.oldestResumable, present: snapshot.revision)
  }

  /// Opens a stream. Throws `too-many-streams`, `draining`, and `too-many-bytes` where what it begins with is too long.
  func open(
    _ id: StreamID? = nil, for client: ClientAddress, prelude: EventText, channel: ChannelID?, overflow: OverflowPolicy,
    beginning: StreamBeginning = .posted
  ) throws(Problem) -> EventStream {
    guard let prelude = prelude.event() else { throw tooLongBeginning }
    do throws(StreamHubError) {
      return try hub.open(
        id, for: client, prelude: prelude, channel: channel, overflow: overflow, beginning: beginning)
    } catch {
      throw Problem(error)
    }
  }

  /// What a stream begins with is too long.
  var tooLongBeginning: Problem {
    Problem(
      .tooManyBytes,
      "the stream would begin with more than the \(limits.eventBytes) bytes of streams.eventBytes: "
        + "ask for fewer keys, cells or rows")
  }

  /// Answers a lagging stream that has read everything else: this text stands for what it missed, up to a revision.
  /// Ends the stream where the text is too long.
  func postCatchUp(_ text: EventText, to id: StreamID, at revision: Revision) {
    // The subscriber misses none of it: the hub queues it, or ends the stream.
    hub.post([catchUp(text, of: id, isLast: true)], position: StreamPosition.commit(revision).rawValue)
  }

  /// What brings a lagging stream on; its end where that is too long to be told.
  func catchUp(_ text: EventText, of id: StreamID, isLast: Bool) -> Delivery {
    guard let event = text.event() else { return .endStream(id, encoder.closingEvent(.overflow)) }
    return .catchUp(id, event, isLast: isLast)
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
    case .noMemory:
      self.init(.overloaded, "there is no memory left for what the stream begins with, of this client or of all")
    case .draining: self.init(.draining, "the server is about to stop")
    }
  }
}
