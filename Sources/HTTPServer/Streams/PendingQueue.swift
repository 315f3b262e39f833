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
