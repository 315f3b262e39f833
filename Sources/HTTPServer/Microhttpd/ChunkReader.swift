/// Parses the chunks of one body strictly (RFC 9112 §7.1), byte by byte as they arrive, without storing any.
struct ChunkReader {
  /// The result of parsing some bytes.
  enum Progress: Equatable {
    /// All bytes belong to chunks.
    case going
    /// The line of the last chunk ends before `next`; trailer fields and an empty line follow.
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

  /// The maximum number of digits in a size: enough for any body, and still representable.
  private static let digitLimit = 15
  /// The maximum length of extensions in bytes, which are ignored; no useful ones are longer.
  private static let extensionLimit = 256

  private var place = Place.size(digitCount: 0)
  private var remaining = 0

  /// Parses the next bytes.
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

  /// Parses one byte that is not content.
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

/// Parses what follows the last chunk of a body: trailer fields, if any, and an empty line (RFC 9112 §7.1.2).
struct TrailerReader {
  /// The result so far.
  enum Progress: Equatable {
    case incomplete
    /// The trailer has this many bytes.
    case complete(byteCount: Int)
    case refused(RequestFault)
  }

  private let limit: Int
  private var lines = LineReader()

  /// Creates a reader of at most `limit` bytes.
  init(limit: Int) {
    self.limit = limit
  }

  /// Continues parsing; `bytes` are all bytes since the last chunk.
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
