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
