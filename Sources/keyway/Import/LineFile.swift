/// The lines of a file, read piece by piece. Empty ones are skipped.
struct LineFile {
  struct Line: Hashable, Sendable {
    /// Which one, from 1.
    var number: Int
    var bytes: ArraySlice<UInt8>
  }

  private(set) var file: InputFile
  private let maximumLineBytes: Int
  private var waiting: [UInt8] = []
  private var position = 0
  private var number = 0
  private var isAtEnd = false

  init(_ file: InputFile, maximumLineBytes: Int = ImportLimits.lineBytes) {
    self.file = file
    self.maximumLineBytes = maximumLineBytes
  }

  /// The next line with something on it; nil at the end.
  mutating func next() throws(ImportError) -> Line? {
    while let bytes = try nextBytes() {
      number += 1
      let isBlank = bytes.allSatisfy { $0 == UInt8(ascii: " ") || (9...13).contains($0) }
      if !isBlank { return Line(number: number, bytes: bytes) }
    }
    return nil
  }

  private mutating func nextBytes() throws(ImportError) -> ArraySlice<UInt8>? {
    var searched = position
    while true {
      if let end = waiting[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { position = end + 1 }
        return try checked(waiting[position..<end])
      }
      if isAtEnd {
        defer { position = waiting.count }
        return position == waiting.count ? nil : try checked(waiting[position...])
      }
      _ = try checked(waiting[position...])
      searched = waiting.count - position
      try readPiece()
    }
  }

  private func checked(_ bytes: ArraySlice<UInt8>) throws(ImportError) -> ArraySlice<UInt8> {
    guard bytes.count <= maximumLineBytes else {
      throw ImportError(line: number + 1, reason: "the line is longer than \(maximumLineBytes) bytes")
    }
    return bytes
  }

  private mutating func readPiece() throws(ImportError) {
    waiting.removeSubrange(..<position)
    position = 0
    if let piece = try file.next() { waiting.append(contentsOf: piece) } else { isAtEnd = true }
  }
}
