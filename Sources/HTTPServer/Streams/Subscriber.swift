/// One event stream on the hub thread that it belongs to. There are thousands, so that the size of each property
/// matters.
final class Subscriber {
  let id: StreamID
  /// The client that reads the stream.
  let client: ClientAddress
  /// The hub's own descriptor; -1 until the connection has been taken over.
  var descriptor: Int32 = -1
  var isChunked = true
  /// True if the kernel accepted less than it was given, and has not reported room since.
  var isBlocked = false
  /// True if the stream is in the list of those to flush at the end of this slice.
  var isTouched = false
  /// True if the stream is in the list of those to close at the end of this slice.
  var isDoomed = false
  /// The reason why no more events are accepted, while the queue still has to be sent; nil if they are.
  var ending: StreamEnd?
  /// True if the peer had everything when the end was decided; nil before.
  var wasDelivered: Bool?
  /// The state of missing events. Always `none` while the stream is ending.
  var lag = Lag.none
  /// The time at which the lag began, in milliseconds that may have wrapped around.
  var lagBegan: UInt32 = 0
  /// The action if too much waits.
  let overflow: OverflowPolicy
  fileprivate(set) var channel: Channel?
  fileprivate var indexInChannel: Int32 = 0
  var queue = PendingQueue()
  var account: QueueAccount
  var slot: ConnectionSlot?
  /// The access log entry of the stream; nil if there is none.
  var access: AccessEntry?
  let openedSecond: Int32
  /// The time at which bytes were last sent, or began to wait.
  var progressSecond: Int32
  /// The deadline for being taken over, or, once the stream is ending, for being flushed.
  var deadlineSecond: Int32

  init(_ opening: HubOpening, now: Int32, attachSeconds: Int) {
    id = opening.id
    client = opening.client
    overflow = opening.overflow
    account = QueueAccount(opening.reservation)
    openedSecond = now
    progressSecond = now
    deadlineSecond = now + Int32(clamping: attachSeconds)
  }

  var isAttached: Bool { descriptor >= 0 }

  /// True if a broadcast may be sent without using the queue.
  var isClear: Bool { isAttached && isChunked && queue.isEmpty && !isBlocked && lag == .none }
}

/// The state of a stream that may miss events, including what its owner knows of it.
enum Lag {
  /// The stream gets every event.
  case none
  /// The stream gets no events, and its owner has not been asked for a catch-up, because there is still something to
  /// send.
  case behind
  /// Everything is sent, and the owner has been asked for the catch-up.
  case asked
}

/// The streams of one channel that belong to one hub thread, and the events of this slice that they have yet to get.
final class Channel {
  let id: ChannelID
  private(set) var members: [Subscriber] = []
  private(set) var batch: [EventBytes] = []
  private(set) var batchByteCount = 0
  /// The position up to which its members have got everything, if the channel counts positions of its own; nil if it
  /// uses those posted to the hub.
  private(set) var position: UInt64?

  init(id: ChannelID) {
    self.id = id
  }

  func join(_ subscriber: Subscriber) {
    subscriber.channel = self
    subscriber.indexInChannel = Int32(members.count)
    members.append(subscriber)
  }

  /// Removes a member. The order of members does not matter: the last one takes its place.
  func leave(_ subscriber: Subscriber) {
    let index = Int(subscriber.indexInChannel)
    assert(members[index] === subscriber)
    members.swapAt(index, members.count - 1)
    members.removeLast()
    if index < members.count { members[index].indexInChannel = Int32(index) }
    subscriber.channel = nil
    if members.capacity > 4 * members.count + 64 { members = Array(members[...]) }
  }

  /// Adds an event to the batch. Returns true if it is the first one.
  func add(_ event: EventBytes) -> Bool {
    batch.append(event)
    batchByteCount += event.framedCount
    if position != nil { move(to: event.position) }
    return batch.count == 1
  }

  /// Makes the channel count positions of its own, and advances it to a position.
  func move(to position: UInt64) {
    self.position = max(self.position ?? 0, position)
  }

  func takeBatch() -> [EventBytes] {
    defer { (batch, batchByteCount) = ([], 0) }
    return batch
  }
}

/// The bytes that a stream has yet to send: whole pieces, shared with other streams, of which the first may be partly
/// sent. Without any input or output of its own.
struct PendingQueue {
  private enum Piece {
    case event(EventBytes)
    case raw([UInt8])
  }

  private var pieces: [Piece] = []
  private var first = 0
  private var sentOfFirst = 0
  private var isFramed = true
  /// The number of bytes that wait.
  private(set) var byteCount = 0

  var isEmpty: Bool { byteCount == 0 }

  /// The number of bytes that wait after the piece that is being sent. A limit applies to these: a single event may be
  /// longer than the limit without its reader being slow.
  var backlogByteCount: Int { isEmpty ? 0 : byteCount - count(of: pieces[first]) + sentOfFirst }

  /// Returns the value of `backlogByteCount` after the event is added.
  func backlogByteCount(adding event: EventBytes) -> Int {
    isEmpty ? 0 : backlogByteCount + event.range(framed: isFramed).count
  }

  /// Adds an event, of which `alreadySent` bytes have been sent; only the first piece may be partly sent.
  mutating func append(_ event: EventBytes, alreadySent: Int = 0) {
    assert(alreadySent == 0 || isEmpty)
    guard event.count > 0 else { return }
    sentOfFirst += alreadySent
    pieces.append(.event(event))
    byteCount += event.range(framed: isFramed).count - alreadySent
  }

  /// Adds bytes that are not an event, and are never dropped.
  mutating func append(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    pieces.append(.raw(bytes))
    byteCount += bytes.count
  }

  /// Inserts the response's head before everything that has been added, before any of it is sent, and determines how
  /// events are sent.
  mutating func begin(with head: [UInt8], framed: Bool) {
    assert(first == 0 && sentOfFirst == 0)
    isFramed = framed
    pieces.insert(.raw(head), at: 0)
    byteCount = pieces.reduce(0) { $0 + count(of: $1) }
  }

  /// Copies the first bytes into the buffer, as many as it holds, and returns their number.
  func copy(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var filled = 0
    var skipped = sentOfFirst
    for piece in pieces[first...] where filled < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
      switch piece {
      case .event(let event):
        let range = event.range(framed: isFramed)
        filled += event.copy(range.lowerBound + skipped..<range.upperBound, into: rest)
      case .raw(let bytes):
        let count = min(bytes.count - skipped, rest.count)
        bytes.withUnsafeBytes { bytes in
          rest.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[skipped..<(skipped + count)]))
        }
        filled += count
      }
      skipped = 0
    }
    return filled
  }

  /// Removes bytes that have been sent. An empty queue keeps no memory.
  mutating func consume(_ count: Int) {
    byteCount -= count
    guard byteCount > 0 else {
      (pieces, first, sentOfFirst) = ([], 0, 0)
      return
    }
    sentOfFirst += count
    while sentOfFirst >= self.count(of: pieces[first]) {
      sentOfFirst -= self.count(of: pieces[first])
      first += 1
    }
    if first > 32, first > pieces.count / 2 {
      pieces.removeFirst(first)
      first = 0
    }
  }

  /// Drops the events of which nothing has been sent; a partly sent one stays, so that the following bytes are still
  /// framed correctly.
  mutating func dropUnsentEvents() {
    let cut = sentOfFirst > 0 ? first : nil
    pieces = pieces.indices[first...].filter { index in
      guard case .event = pieces[index] else { return true }
      return index == cut
    }
    .map { pieces[$0] }
    first = 0
    byteCount = pieces.reduce(0) { $0 + count(of: $1) } - sentOfFirst
  }

  private func count(of piece: Piece) -> Int {
    switch piece {
    case .event(let event): event.range(framed: isFramed).count
    case .raw(let bytes): bytes.count
    }
  }
}

/// The reservation for the queue of one event stream. Touched by the stream's hub thread alone.
///
/// A reader that reads immediately never has more in its queue than the uncounted bytes, and costs nothing here. Beyond
/// that, bytes are counted in steps, so that the lock of the ledger is not taken for every event.
struct QueueAccount {
  private static let step = 65_536

  private var reservation: MemoryReservation?

  /// Creates an account without a reservation, or with the one for the beginning of the stream.
  init(_ reservation: MemoryReservation? = nil) { self.reservation = reservation }

  /// Returns the number of bytes reserved for a queue of a length.
  static func reserved(for byteCount: Int) -> Int {
    byteCount <= MemoryLedger.uncountedBytes ? 0 : (byteCount + step - 1) / step * step
  }

  /// Makes room for a queue of so many bytes. Throws if that is refused, and leaves the reservation as it is.
  mutating func grow(
    to byteCount: Int, of client: ClientAddress, in ledger: MemoryLedger
  ) throws(MemoryRefusal) {
    let wanted = Self.reserved(for: byteCount)
    guard wanted > reservation?.byteCount ?? 0 else { return }
    if let reservation {
      try reservation.resize(to: wanted)
    } else {
      reservation = try ledger.reserve(wanted, for: client, .pendingEvents)
    }
  }

  /// Returns the bytes that a queue of so many bytes does not need.
  mutating func shrink(to byteCount: Int) {
    guard let reservation else { return }
    let wanted = Self.reserved(for: byteCount)
    if wanted == 0 {
      self.reservation = nil
    } else if wanted < reservation.byteCount {
      // A decrease is never refused.
      try? reservation.resize(to: wanted)
    }
  }
}
