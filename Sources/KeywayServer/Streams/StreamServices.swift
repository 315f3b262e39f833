import Crypto
package import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support
import Synchronization

/// The services that streams of every kind use: the hub that owns their sockets, the encoder of their events, their
/// names and limits.
package final class StreamServices: Sendable {
  package let hub: StreamHub
  package let ledger: MemoryLedger
  let encoder: EventEncoder
  package let limits: StreamLimits
  package let names: StreamNames
  /// Returns monotonic seconds.
  let now: @Sendable () -> UInt64
  private let notificationCount = Atomic<UInt64>(0)

  /// Creates the services. Names of streams begin with `mark`. `random` returns unguessable numbers, and `now` the
  /// seconds by which cut streams age.
  init(
    hub: StreamHub, ledger: MemoryLedger = MemoryLedger(limit: .max, clientLimit: .max), epoch: String,
    limits: StreamLimits, mark: String = "",
    now: @escaping @Sendable () -> UInt64 = { UInt64(SystemClock.nanoseconds / 1_000_000_000) },
    random: () -> UInt64
  ) {
    self.now = now
    self.hub = hub
    self.ledger = ledger
    self.limits = limits
    encoder = EventEncoder(epoch: epoch, eventBytes: limits.eventBytes)
    names = StreamNames(mark: mark, random: random)
  }

  /// Reserves the memory of a client's stream besides its events. Returns nil if it is too little to count. Throws
  /// `overloaded`.
  func reserve(_ bytes: Int, for client: ClientAddress) throws(Problem) -> MemoryReservation? {
    guard bytes > MemoryLedger.uncountedBytes else { return nil }
    do throws(MemoryRefusal) {
      return try ledger.reserve(bytes, for: client, .streams)
    } catch {
      throw Problem(error)
    }
  }

  /// The maximum size in bytes of a first event that is kept for the next stream with the same request.
  let keptEventBytes = 65_536

  /// The number of changes that subscribers were notified of, counted once for each subscriber.
  var notifications: UInt64 { notificationCount.load(ordering: .relaxed) }

  /// Counts changes that subscribers were notified of.
  func countNotifications(_ count: Int) { notificationCount.wrappingAdd(UInt64(count), ordering: .relaxed) }

  /// Returns the beginning of a stream whose client sent this cursor.
  func resumption(from cursor: String?, _ snapshot: Snapshot) -> Resumption {
    Resumption(
      cursor: cursor, epoch: encoder.epoch, oldest: snapshot.oldestResumable, present: snapshot.revision)
  }

  /// Opens a stream. Throws `too-many-streams`, `draining`, and `too-many-bytes` if its beginning is too long.
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

  /// The problem of a stream whose beginning is too long.
  var tooLongBeginning: Problem {
    Problem(
      .tooManyBytes,
      "the stream would begin with more than the \(limits.eventBytes) bytes of streams.eventBytes: "
        + "request fewer keys, cells or rows")
  }

  /// Posts the catch-up of a lagging stream that has read everything else: a text in place of what it missed, up to a
  /// revision. Ends the stream if the text is too long.
  func postCatchUp(_ text: EventBuffer, to id: StreamID, at revision: Revision) {
    // The catch-up is never dropped: the hub queues it, or ends the stream.
    hub.post([catchUp(text, of: id, isLast: true)], position: StreamPosition.commit(revision).rawValue)
  }

  /// Returns the delivery of a catch-up to a lagging stream. If the text is too long, returns the end of the stream.
  func catchUp(_ text: EventBuffer, of id: StreamID, isLast: Bool) -> Delivery {
    guard let event = text.event() else { return .endStream(id, encoder.closingEvent(.overflow)) }
    return .catchUp(id, event, isLast: isLast)
  }
}

extension Problem {
  /// Creates the problem of a stream that the hub did not open.
  package init(_ error: StreamHubError) {
    switch error {
    case .tooManyStreams: self.init(.tooManyStreams, "the server's limit of open streams is reached")
    case .tooManyStreamsOfClient:
      self.init(
        .tooManyStreams, "this client's limit of open streams is reached", status: .tooManyRequests)
    case .noMemory:
      self.init(.overloaded, "no memory is left for the beginning of the stream, for this client or for all")
    case .draining: self.init(.draining, "the server is about to stop")
    }
  }
}

/// Limits of streams.
package struct StreamLimits: Sendable {
  /// The maximum number of cells of one stream. `streams.cells`.
  package var cells = 1000
  /// The maximum number of key paths of one stream or cell. `streams.keyPaths`.
  package var keyPaths = 64
  /// The maximum number of bytes of missed events that are sent to a stream that resumes. `streams.replayBytes`.
  package var replayBytes = 16 * 1024 * 1024
  /// The maximum number of bytes of one commit's events for a stream, and of the beginning of a stream.
  /// `streams.eventBytes`.
  package var eventBytes = 16 * 1024 * 1024
  /// The maximum number of bytes of long events of one batch of commits, for all streams with cells of one client. The
  /// other streams receive their events later, like slow ones.
  var batchBytes = 64 * 1024 * 1024
  /// The maximum number of bytes of missed events that are kept for the next streams that resume from the same place,
  /// besides those being sent.
  package var resumedBytes = 32 * 1024 * 1024
  /// The maximum number of streams that wait to be opened because their beginning takes work: of those that resume, and
  /// of live queries, each. `streams.opening`.
  package var opening = 12_000
  /// The maximum of the same for one client address: less than the total, so that one client never takes every place.
  /// `streams.openingPerAddress`.
  package var openingPerAddress = 10_500
  /// The time, in seconds, that a stream with cells can be resumed after its connection was cut. 0 disables resuming.
  /// `streams.resumeSeconds`.
  package var resumeSeconds = 60
  /// The maximum number of cut streams that are kept. `streams.cut`.
  package var cut = 20_000
  /// The maximum number of cut streams of one client that are kept. `streams.cutPerAddress`.
  package var cutPerAddress = 10_500
  /// The number of seconds between heartbeats, sent in `open`. `heartbeat.seconds`.
  package var heartbeatSeconds = 15

  /// Creates the default limits.
  package init() {}
}

/// Makes and reads the names of streams in URLs: the mark of the node, the number of the stream, and 128 unguessable
/// bits, so that no client can end another's stream or change its cells.
///
/// The bits are a keyed hash of the number. Nothing has to be stored for a stream, and the name of one stream reveals
/// nothing about that of another.
package struct StreamNames: Sendable {
  private let key: [UInt64]
  private let mark: String

  /// Creates names that begin with the mark of this node and depend on 256 random bits.
  init(mark: String, random: () -> UInt64) {
    self.mark = mark
    key = (0..<4).map { _ in random() }
  }

  /// Returns the mark of the node that made a name, or nil if the text does not have the form of a name.
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

  /// Returns the name of a stream.
  func text(of id: StreamID) -> String {
    var hash = SHA256()
    for word in key + [id.number] { hash.update(word) }
    return "\(mark)\(String(id.number, radix: 36))-\(hash.finalize().prefix(16).hexadecimal)"
  }

  /// Returns the stream with a name, open or not. Nil if no stream can have the name.
  package func id(of text: String) -> StreamID? {
    guard text.hasPrefix(mark) else { return nil }
    let rest = text.dropFirst(mark.count)
    guard let dash = rest.firstIndex(of: "-"), let number = UInt64(rest[..<dash], radix: 36) else { return nil }
    let id = StreamID(number)
    return self.text(of: id) == text ? id : nil
  }
}

/// Six letters and digits that identify the address of a node. The names of its streams and pages begin with them, so
/// that every node that knows the address can tell whose a name is, and none has to store names.
package struct NodeMark: Hashable, Sendable {
  /// The letters and digits.
  package let text: String

  private static let length = 6
  /// The number of marks: 36 to the power of the length.
  private static let count: UInt64 = 2_176_782_336

  /// Creates the mark of the node that others reach at this address.
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

/// The approximate sizes in bytes of the parts of a stream, for the ledger.
enum StreamWeight {
  /// An observation in the index, with what it depends on.
  static let observation = 600
  /// The remainder of an observation that has ended.
  static let formerObservation = 120
  /// A cell with its binding, except texts.
  static let cell = 700
  /// A stream without a connection, except its cells. Always counted, since nothing else limits how many a client has.
  static let cut = 4_200
  /// A row of a live query, except its values, most of which it shares with the objects.
  static let row = 200
}
