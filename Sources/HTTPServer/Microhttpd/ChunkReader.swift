/// Follows the chunks of one body strictly (RFC 9112 §7.1), byte by byte as they come, without keeping any.
struct ChunkReader {
  /// What became of the bytes that were given.
  enum Progress: Equatable {
    /// All of them belong to chunks.
    case going
    /// The line of the last chunk ends before this place; trailer fields and an empty line follow.
    case last(next: Int)
    case refused(RequestFault)
  }

  private enum Place {
    case size(digitCount: Int)
    case extensions(byteCount: Int)
    case sizeEnd
    case content
    case contentEnd
    case contentEndLine
  }

  /// A size has at most so many digits: more than any body has, and still a number.
  private static let digitLimit = 15
  /// Extensions are read over; nothing useful is longer.
  private static let extensionLimit = 256

  private var place = Place.size(digitCount: 0)
  private var remaining = 0

  /// Reads on.
  mutating func read(_ bytes: UnsafeMutableRawBufferPointer) -> Progress {
    var index = 0
    while index < bytes.count {
      if case .content = place {
        let count = min(remaining, bytes.count - index)
        remaining -= count
        index += count
        if remaining == 0 { place = .contentEnd }
        continue
      }
      guard let defect = step(bytes[index]) else {
        index += 1
        if case .content = place, remaining == 0 { return .last(next: index) }
        continue
      }
      return .refused(.malformed(defect))
    }
    return .going
  }

  /// Reads one byte that is not content.
  private mutating func step(_ byte: UInt8) -> RequestDefect? {
    switch place {
    case .size(let digitCount): return size(byte, digitCount)
    case .extensions(let byteCount):
      guard byte != .carriageReturn else {
        place = .sizeEnd
        return nil
      }
      guard byte.isFieldContent, byteCount < Self.extensionLimit else { return .chunkSize }
      place = .extensions(byteCount: byteCount + 1)
    case .sizeEnd:
      guard byte == .lineFeed else { return .chunkSize }
      place = .content
    case .contentEnd:
      guard byte == .carriageReturn else { return .chunkEnd }
      place = .contentEndLine
    case .contentEndLine:
      guard byte == .lineFeed else { return .chunkEnd }
      place = .size(digitCount: 0)
    case .content: break
    }
    return nil
  }

  private mutating func size(_ byte: UInt8, _ digitCount: Int) -> RequestDefect? {
    if digitCount > 0 {
      if byte == .carriageReturn {
        place = .sizeEnd
        return nil
      }
      if byte == UInt8(ascii: ";") {
        place = .extensions(byteCount: 0)
        return nil
      }
    }
    guard digitCount < Self.digitLimit, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
      return .chunkSize
    }
    remaining = (digitCount == 0 ? 0 : remaining * 16) + digit
    place = .size(digitCount: digitCount + 1)
    return nil
  }
}

/// Reads what follows the last chunk of a body: trailer fields, if any, and an empty line (RFC 9112 §7.1.2).
struct TrailerReader {
  /// What is known by now.
  enum Progress: Equatable {
    case incomplete
    /// It takes so many bytes.
    case complete(byteCount: Int)
    case refused(RequestFault)
  }

  private let limit: Int
  private var lines = LineReader()

  /// A reader of at most `limit` bytes.
  init(limit: Int) {
    self.limit = limit
  }

  /// Reads on; `bytes` are all since the last chunk.
  mutating func read(_ bytes: UnsafeMutableRawBufferPointer) -> Progress {
    while true {
      switch lines.next(in: bytes) {
      case .nothing: return bytes.count > limit ? .refused(.headersTooLarge(limit: limit)) : .incomplete
      case .malformed: return .refused(.malformed(.lineEnd))
      case .line(let line) where line.isEmpty: return .complete(byteCount: lines.position)
      case .line(let line):
        do throws(RequestDefect) { _ = try FieldLine(line) } catch { return .refused(.malformed(error)) }
      }
    }
  }
}
