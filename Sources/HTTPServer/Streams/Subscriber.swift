/// One event stream on the hub thread it belongs to. There are thousands: every property counts.
final class Subscriber {
  let id: StreamID
  /// Who reads it.
  let client: ClientAddress
  /// The hub's own descriptor; -1 until the connection has been taken over.
  var descriptor: Int32 = -1
  var isChunked = true
  /// The kernel took less than it was given, and has not said since that there is room.
  var isBlocked = false
  /// It is in the list of those to be flushed at the end of this slice.
  var isTouched = false
  /// It is in the list of those to be closed at the end of this slice.
  var isDoomed = false
  /// Why no more events are taken; the queue still has to be sent.
  var ending: StreamEnd?
  /// Whether the other side had everything when the end was decided; nil before.
  var wasDelivered: Bool?
  /// Whether it misses events. Never while it is ending.
  var lag = Lag.none
  /// When it began to miss them, in milliseconds that may have wrapped around.
  var lagBegan: UInt32 = 0
  /// What becomes of it when too much waits.
  let overflow: OverflowPolicy
  fileprivate(set) var channel: Channel?
  fileprivate var indexInChannel: Int32 = 0
  var queue = PendingQueue()
  var account: QueueAccount
  var slot: ConnectionSlot?
  /// What the access log will say of it; nil where there is none.
  var access: AccessEntry?
  let openedSecond: Int32
  /// When bytes last left, or began to wait.
  var progressSecond: Int32
  /// When the wait ends for being taken over, or, once it is ending, for being flushed.
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

  /// Whether a broadcast may be sent without looking at the queue.
  var isClear: Bool { isAttached && isChunked && queue.isEmpty && !isBlocked && lag == .none }
}

/// Whether a stream misses events, and what its owner knows of it.
enum Lag {
  /// It gets every event.
  case none
  /// It gets none, and its owner has not been asked for a catch-up: there is still something to send.
  case behind
  /// Everything is sent, and the owner has been asked.
  case asked
}

/// The streams of one channel that belong to one hub thread, and the events of this slice that they have still to get.
final class Channel {
  let id: ChannelID
  private(set) var members: [Subscriber] = []
  private(set) var batch: [EventBytes] = []
  private(set) var batchByteCount = 0
  /// How far its members have been told, where the channel counts for itself; nil where it goes by what is posted to
  /// the hub.
  private(set) var position: UInt64?

  init(id: ChannelID) {
    self.id = id
  }

  func join(_ subscriber: Subscriber) {
    subscriber.channel = self
    subscriber.indexInChannel = Int32(members.count)
    members.append(subscriber)
  }

  /// Order among members does not matter: the last takes the place of the one that leaves.
  func leave(_ subscriber: Subscriber) {
    let index = Int(subscriber.indexInChannel)
    assert(members[index] === subscriber)
    members.swapAt(index, members.count - 1)
    members.removeLast()
    if index < members.count { members[index].indexInChannel = Int32(index) }
    subscriber.channel = nil
    if members.capacity > 4 * members.count + 64 { members = Array(members[...]) }
  }

  /// Whether this is the first event of its batch.
  func add(_ event: EventBytes) -> Bool {
    batch.append(event)
    batchByteCount += event.framedCount
    if position != nil { move(to: event.position) }
    return batch.count == 1
  }

  /// Has the channel count for itself, and its members told as far as a position.
  func move(to position: UInt64) {
    self.position = max(self.position ?? 0, position)
  }

  func takeBatch() -> [EventBytes] {
    defer { (batch, batchByteCount) = ([], 0) }
    return batch
  }
}

/// The bytes that a stream has still to send: whole pieces, shared with other streams, the first of them maybe partly
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
  /// How many bytes wait.
  private(set) var byteCount = 0

  var isEmpty: Bool { byteCount == 0 }

  /// How many bytes wait behind the piece that is being sent. A limit applies to these: one event may be longer than
  /// the limit, and its reader is not slow for that.
  var backlogByteCount: Int { isEmpty ? 0 : byteCount - count(of: pieces[first]) + sentOfFirst }

  /// What `backlogByteCount` will be when the event is added.
  func backlogByteCount(adding event: EventBytes) -> Int {
    isEmpty ? 0 : backlogByteCount + event.range(framed: isFramed).count
  }

  /// Adds an event, of which `alreadySent` bytes have left; only the first piece may be cut like this.
  mutating func append(_ event: EventBytes, alreadySent: Int = 0) {
    assert(alreadySent == 0 || isEmpty)
    guard event.count > 0 else { return }
    sentOfFirst += alreadySent
    pieces.append(.event(event))
    byteCount += event.range(framed: isFramed).count - alreadySent
  }

  /// Adds bytes that are not an event, and never dropped.
  mutating func append(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    pieces.append(.raw(bytes))
    byteCount += bytes.count
  }

  /// Puts the response's head before everything that has been added, before any of it is sent, and settles how events
  /// are sent.
  mutating func begin(with head: [UInt8], framed: Bool) {
    assert(first == 0 && sentOfFirst == 0)
    isFramed = framed
    pieces.insert(.raw(head), at: 0)
    byteCount = pieces.reduce(0) { $0 + count(of: $1) }
  }

  /// Copies what comes first into the buffer, as much as it holds, and gives the number of bytes.
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

  /// Takes away bytes that have left. An empty queue keeps no memory.
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

  /// Drops the events of which nothing has been sent; a partly sent one stays, so that what follows is still framed.
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

/// What the ledger has for the queue of one event stream. Touched by the stream's hub thread alone.
///
/// A reader that reads at once never has more in its queue than is not counted, and costs nothing here. What more waits
/// is counted in steps, so that the lock of the ledger is not taken for every event.
struct QueueAccount {
  private static let step = 65_536

  private var reservation: MemoryReservation?

  /// Nothing, or what was reserved for what the stream begins with.
  init(_ reservation: MemoryReservation? = nil) { self.reservation = reservation }

  /// How many bytes are reserved for a queue of a length.
  static func reserved(for byteCount: Int) -> Int {
    byteCount <= MemoryLedger.uncountedBytes ? 0 : (byteCount + step - 1) / step * step
  }

  /// Has room for a queue of so many bytes. Throws where that is refused, and leaves what there was.
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

  /// Gives back what a queue of so many bytes does not need.
  mutating func shrink(to byteCount: Int) {
    guard let reservation else { return }
    let wanted = Self.reserved(for: byteCount)
    if wanted == 0 {
      self.reservation = nil
    } else if wanted < reservation.byteCount {
      // Less is never refused.
      try? reservation.resize(to: wanted)
    }
  }
}
