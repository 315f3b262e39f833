import Crypto
package import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support
import Synchronization

/// What streams of every kind are made with: the hub that owns their sockets, the encoder of their events, their names
/// and limits.
package final class StreamServices: Sendable {
  package let hub: StreamHub
  package let ledger: MemoryLedger
  let encoder: EventEncoder
  package let limits: StreamLimits
  package let names: StreamNames
  private let random: @Sendable () -> UInt64
  /// Seconds, which only grow.
  let now: @Sendable () -> UInt64
  private let notificationCount = Atomic<UInt64>(0)

  /// Names begin with `mark`; `random` gives unguessable numbers, and `now` the seconds by which streams age that were
  /// cut.
  init(
    hub: StreamHub, ledger: MemoryLedger = MemoryLedger(limit: .max, clientLimit: .max), epoch: String,
    limits: StreamLimits, mark: String = "",
    now: @escaping @Sendable () -> UInt64 = { UInt64(SystemClock.nanoseconds / 1_000_000_000) },
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
  func prelude() -> EventBuffer {
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
    _ id: StreamID? = nil, for client: ClientAddress, prelude: EventBuffer, channel: ChannelID?,
    overflow: OverflowPolicy,
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
  func postCatchUp(_ text: EventBuffer, to id: StreamID, at revision: Revision) {
    // The subscriber misses none of it: the hub queues it, or ends the stream.
    hub.post([catchUp(text, of: id, isLast: true)], position: StreamPosition.commit(revision).rawValue)
  }

  /// What brings a lagging stream on; its end where that is too long to be told.
  func catchUp(_ text: EventBuffer, of id: StreamID, isLast: Bool) -> Delivery {
    guard let event = text.event() else { return .endStream(id, encoder.closingEvent(.overflow)) }
    return .catchUp(id, event, isLast: isLast)
  }
}

extension Problem {
  /// Why no stream was opened.
  package init(_ error: StreamHubError) {
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

/// What streams may hold.
package struct StreamLimits: Sendable {
  /// The most cells of one stream. `streams.cells`.
  package var cells = 1000
  /// The most key paths of one stream or cell. `streams.keyPaths`.
  package var keyPaths = 64
  /// The most bytes of missed events that a stream which resumes is sent. `streams.replayBytes`.
  package var replayBytes = 16 * 1024 * 1024
  /// The most bytes of what one commit does to a stream, or a stream begins with. `streams.eventBytes`.
  package var eventBytes = 16 * 1024 * 1024
  /// The most bytes of long events that one batch of commits has for all streams with cells of one client; the others
  /// are then told later, as slow ones are.
  var batchBytes = 64 * 1024 * 1024
  /// The most bytes of missed events that are kept, besides those being sent, for the next who resume alike.
  package var resumedBytes = 32 * 1024 * 1024
  /// The most streams that wait to be opened because their beginning takes work: those that resume, and live queries,
  /// each. `streams.opening`.
  package var opening = 12_000
  /// The same for one client address: less than all, so that one client never takes every place.
  /// `streams.openingPerAddress`.
  package var openingPerAddress = 10_500
  /// How long a stream with cells is kept for its client to come back once its connection was cut; 0 for not at all.
  /// `streams.resumeSeconds`.
  package var resumeSeconds = 60
  /// The most streams that are kept so. `streams.cut`.
  package var cut = 20_000
  /// The same of one client. `streams.cutPerAddress`.
  package var cutPerAddress = 10_500
  /// Seconds between heartbeats, named in `open`. `heartbeat.seconds`.
  package var heartbeatSeconds = 15

  /// The defaults.
  package init() {}
}

/// Makes and reads the names of streams in URLs: the mark of the node, a number to find the stream by, and 128 bits
/// that nobody can guess, so that no client can change the cells of another's stream or end it.
///
/// The bits are a keyed hash of the number. Nothing has to be remembered for a stream, and no stream's name says
/// anything of another's.
package struct StreamNames: Sendable {
  private let key: [UInt64]
  private let mark: String

  /// Names that begin with the mark of this node and depend on 256 random bits.
  init(mark: String, random: () -> UInt64) {
    self.mark = mark
    key = (0..<4).map { _ in random() }
  }

  /// Which node has made a name; nil where no node has made it.
  package static func maker(of text: String) -> NodeMark? {
    func areDigits(_ bytes: some Sequence<UInt8>, _ last: Character) -> Bool {
      bytes.allSatisfy { (0x30...0x39).contains($0) || $0 >= 0x61 && $0 <= last.asciiValue ?? 0 }
    }
    guard let mark = NodeMark(ofName: text), areDigits(mark.text.utf8, "z") else { return nil }
    let rest = text.utf8.dropFirst(mark.text.utf8.count)
    guard let dash = rest.firstIndex(of: UInt8(ascii: "-")) else { return nil }
    let (number, hash) = (rest[..<dash], rest[dash...].dropFirst())
    guard (1...13).contains(number.count), areDigits(number, "z"), hash.count == 32, areDigits(hash, "f") else {
      return nil
    }
    return mark
  }

  /// The name of a stream.
  func text(of id: StreamID) -> String {
    var hash = SHA256()
    for word in key + [id.number] { hash.update(word) }
    return "\(mark)\(String(id.number, radix: 36))-\(hash.finalize().prefix(16).hexadecimal)"
  }

  /// The stream that has a name, open or not; nil where no stream can have it.
  package func id(of text: String) -> StreamID? {
    guard text.hasPrefix(mark) else { return nil }
    let rest = text.dropFirst(mark.count)
    guard let dash = rest.firstIndex(of: "-"), let number = UInt64(rest[..<dash], radix: 36) else { return nil }
    let id = StreamID(number)
    return self.text(of: id) == text ? id : nil
  }
}

/// Six letters and digits that stand for the address of a node. The names of its streams and pages begin with them, so
/// that every node that knows the address can tell whose a name is, and none has to remember names.
package struct NodeMark: Hashable, Sendable {
  /// The letters and digits.
  package let text: String

  private static let length = 6
  /// The number of marks: 36 to the power of the length.
  private static let count: UInt64 = 2_176_782_336

  /// The mark of the node that others reach at this address.
  package init(of url: String) {
    var hash = SHA256()
    hash.update(Array(url.utf8))
    let number = hash.finalize().prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    text = (number % Self.count).padded(to: Self.length, radix: 36)
  }

  /// Reads the mark at the beginning of a name; nil if the name is too short to have one.
  package init?(ofName name: String) {
    let text = name.prefix(Self.length)
    guard text.utf8.count == Self.length, name.utf8.count > Self.length else { return nil }
    self.text = String(text)
  }
}

/// About how many bytes of memory things take up that a stream has, for the ledger.
enum StreamWeight {
  /// An observation in the index, with what it depends on.
  static let observation = 600
  /// What is kept of an observation that has ended.
  static let formerObservation = 120
  /// A cell with its binding, but for texts.
  static let cell = 700
  /// A stream without a connection, but for its cells. Always counted, since nothing else bounds how many a client has.
  static let cut = 4_200
  /// A row of a live query, but for its values, which it mostly shares with the objects.
  static let row = 200
}
