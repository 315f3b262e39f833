import Glibc

/// Takes lines off bytes that come piece by piece, all of them given each time.
struct LineReader {
  /// What comes next.
  enum Next {
    /// A line, without its end.
    case line(UnsafeMutableRawBufferPointer)
    /// A line feed without a carriage return before it.
    case malformed
    /// No line that is whole.
    case nothing
  }

  /// Where the first line begins that was not given yet.
  private(set) var position = 0
  private var searchStart = 0

  /// The next line of `bytes`.
  mutating func next(in bytes: UnsafeMutableRawBufferPointer) -> Next {
    guard searchStart < bytes.count, let base = bytes.baseAddress,
      let found = memchr(base + searchStart, Int32(UInt8.lineFeed), bytes.count - searchStart)
    else {
      searchStart = bytes.count
      return .nothing
    }
    let end = UnsafeRawPointer(found) - UnsafeRawPointer(base)
    guard end > position, bytes[end - 1] == .carriageReturn else { return .malformed }
    defer {
      position = end + 1
      searchStart = position
    }
    return .line(bytes[position..<(end - 1)].rebased)
  }
}
