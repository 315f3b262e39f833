/// The bytes of one or more server-sent events, framed once for all the streams that they go to.
///
/// A stream over HTTP/1.1 is sent `framed`, with the payload as one chunk; over HTTP/1.0 it is sent the payload itself.
/// Usually the bytes are one array; a long payload is several arrays, which other events may share.
package final class EventBytes: Sendable {
  /// The chunk: its size line, the payload and the end of the line.
  private let pieces: [[UInt8]]
  /// The number of bytes of the chunk.
  let framedCount: Int
  let payload: Range<Int>
  /// The position that the events belong to, as in `StreamHub.post(_:position:)`. It is used only to report it for a
  /// stream that misses the events.
  package let position: UInt64

  /// Creates the bytes from the text of whole events, including blank lines. An empty payload sends nothing: an empty
  /// chunk would end the response.
  package init(_ payload: [UInt8], position: UInt64 = 0) {
    self.position = position
    guard !payload.isEmpty else {
      (pieces, framedCount, self.payload) = ([], 0, 0..<0)
      return
    }
    let size = String(payload.count, radix: 16).utf8
    let start = size.count + 2
    let framed = [UInt8](unsafeUninitializedCapacity: start + payload.count + 2) { buffer, count in
      count = buffer.initialize(fromContentsOf: size)
      count = buffer[count...].initialize(fromContentsOf: Self.lineEnd)
      count = buffer[count...].initialize(fromContentsOf: payload)
      count = buffer[count...].initialize(fromContentsOf: Self.lineEnd)
    }
    (pieces, framedCount) = ([framed], framed.count)
    self.payload = start..<(start + payload.count)
  }

  /// Creates the bytes from the text in pieces, which are kept as they are.
  package init(pieces: [[UInt8]], position: UInt64 = 0) {
    self.position = position
    let count = pieces.reduce(0) { $0 + $1.count }
    guard count > 0 else {
      (self.pieces, framedCount, payload) = ([], 0, 0..<0)
      return
    }
    let size = Array(String(count, radix: 16).utf8) + Self.lineEnd
    self.pieces = [size] + pieces + [Self.lineEnd]
    framedCount = size.count + count + Self.lineEnd.count
    payload = size.count..<(size.count + count)
  }

  /// The number of bytes of the payload.
  package var count: Int { payload.count }

  /// Returns the range of the bytes to send.
  func range(framed isFramed: Bool) -> Range<Int> { isFramed ? 0..<framedCount : payload }

  /// The chunk if it is one array of bytes; nil otherwise.
  var wholeChunk: [UInt8]? { pieces.count == 1 ? pieces[0] : nil }

  /// Appends the text of the events.
  package func appendText(to bytes: inout [UInt8]) {
    let start = bytes.count
    append(to: &bytes)
    bytes.removeLast(framedCount - payload.upperBound)
    bytes.removeSubrange(start..<start + payload.lowerBound)
  }

  /// Appends the chunk.
  func append(to bytes: inout [UInt8]) {
    for piece in pieces { bytes.append(contentsOf: piece) }
  }

  /// Copies the beginning of a range of the chunk into the buffer, as much as it holds, and returns the number of
  /// bytes.
  func copy(_ range: Range<Int>, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var filled = 0
    var start = 0
    let end = range.lowerBound + min(range.count, buffer.count)
    for piece in pieces {
      let wanted = max(start, range.lowerBound)..<max(start, range.lowerBound, min(start + piece.count, end))
      if !wanted.isEmpty {
        piece.withUnsafeBytes { bytes in
          UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyMemory(
            from: UnsafeRawBufferPointer(rebasing: bytes[(wanted.lowerBound - start)..<(wanted.upperBound - start)]))
        }
        filled += wanted.count
      }
      start += piece.count
      if start >= end { break }
    }
    return filled
  }

  /// The chunk that ends a response.
  static let terminator: [UInt8] = Array("0\r\n\r\n".utf8)

  private static let lineEnd: [UInt8] = [13, 10]
}
