/// Keeps the last event ID of a stream (WHATWG HTML §9.2.6), wherever the pieces begin and end: that of the last event
/// that has come to its end.
struct EventIDScanner: Hashable, Sendable {
  private static let mark = Array("id: ".utf8)
  /// An ID that is longer is none of ours.
  private static let maximumBytes = 256

  /// The id to resume from; empty before the first.
  private(set) var last: [UInt8] = []

  /// How many bytes of the line came; of an ID's line, those of the mark.
  private var matched = 0
  private var lineBytes = 0
  private var pending: [UInt8] = []

  /// Takes in what comes next.
  mutating func scan(_ bytes: UnsafeBufferPointer<UInt8>) {
    for byte in bytes { take(byte) }
  }

  private mutating func take(_ byte: UInt8) {
    if byte == UInt8(ascii: "\n") {
      // An empty line ends the event.
      if lineBytes == 0, !pending.isEmpty {
        last = pending
        pending.removeAll(keepingCapacity: true)
      }
      (matched, lineBytes) = (0, 0)
      return
    }
    if matched == Self.mark.count {
      if pending.count < Self.maximumBytes { pending.append(byte) }
    } else if lineBytes == matched, byte == Self.mark[matched] {
      matched += 1
      if matched == Self.mark.count { pending.removeAll(keepingCapacity: true) }
    }
    lineBytes += 1
  }
}
