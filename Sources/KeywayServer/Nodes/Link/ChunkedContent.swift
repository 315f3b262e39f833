/// Takes the content out of chunks that come in pieces of any size (RFC 9112 §7.1).
struct ChunkedContent {
  private enum Place {
    case size, content, contentEnd, trailer
  }

  private var place = Place.size
  /// What has come of a line.
  private var line: [UInt8] = []
  /// How much of the present chunk is still to come.
  private var rest = 0

  /// Lines between chunks are not longer, in bytes.
  private static let lineLimit = 4_096

  /// Whether the last chunk has come.
  private(set) var isOver = false

  /// Appends what is content in the next bytes; what comes after the last chunk is none. Throws where they are not
  /// chunks.
  mutating func take(_ bytes: ArraySlice<UInt8>, into content: inout [UInt8]) throws(NodeFault) {
    var index = bytes.startIndex
    while index < bytes.endIndex, !isOver {
      if place == .content {
        let piece = bytes[index...].prefix(rest)
        content.append(contentsOf: piece)
        rest -= piece.count
        index = piece.endIndex
        if rest == 0 { place = .contentEnd }
        continue
      }
      let byte = bytes[index]
      index += 1
      guard byte == UInt8(ascii: "\n") else {
        guard line.count < Self.lineLimit else { throw Self.strange }
        line.append(byte)
        continue
      }
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      try finishLine()
      line = []
    }
  }

  private mutating func finishLine() throws(NodeFault) {
    switch place {
    case .size:
      let digits = String(decoding: line.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
      guard !digits.hasPrefix("+"), let count = Int(digits, radix: 16), count >= 0 else { throw Self.strange }
      rest = count
      place = count == 0 ? .trailer : .content
    case .contentEnd:
      guard line.isEmpty else { throw Self.strange }
      place = .size
    case .trailer: isOver = line.isEmpty
    case .content: break
    }
  }

  private static var strange: NodeFault { NodeFault("the stream is not in chunks") }
}
