internal import Foundation

/// The lines of a file or of standard input, read piece by piece. Empty ones are skipped, a byte order mark is dropped.
struct LineFile {
  /// One line, without its end.
  struct Line: Hashable, Sendable {
    /// Which one, from 1.
    var number: Int
    /// What it says.
    var bytes: ArraySlice<UInt8>
  }

  /// The name that stands for standard input.
  static let standardInput = "-"

  /// The name for messages.
  let name: String
  /// How large the file is; nil where nobody knows.
  let size: Int?
  /// How much of it has been read.
  private(set) var bytesRead = 0

  private let handle: FileHandle
  private let maximumLineBytes: Int
  private var waiting: [UInt8] = []
  private var position = 0
  private var number = 0
  private var isAtEnd = false

  /// Opens a file, or standard input for `-`.
  init(_ name: String, maximumLineBytes: Int = ImportLimits.lineBytes) throws(ImportError) {
    self.maximumLineBytes = maximumLineBytes
    if name == Self.standardInput {
      self.name = "stdin"
      handle = .standardInput
      size = nil
      return
    }
    self.name = name
    guard let handle = FileHandle(forReadingAtPath: name) else {
      throw ImportError(file: name, line: 0, reason: "there is no such file, or it cannot be read")
    }
    self.handle = handle
    let attributes = try? FileManager.default.attributesOfItem(atPath: name)
    size = (attributes?[.size] as? NSNumber)?.intValue
  }

  /// The next line with something on it; nil at the end.
  mutating func next() throws(ImportError) -> Line? {
    while let bytes = try nextBytes() {
      number += 1
      let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
      let line = Line(number: number, bytes: number == 1 && bytes.starts(with: mark) ? bytes.dropFirst(3) : bytes)
      let isBlank = line.bytes.allSatisfy { $0 == UInt8(ascii: " ") || (9...13).contains($0) }
      if !isBlank { return line }
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
      throw ImportError(file: name, line: number + 1, reason: "the line is longer than \(maximumLineBytes) bytes")
    }
    return bytes
  }

  private mutating func readPiece() throws(ImportError) {
    waiting.removeSubrange(..<position)
    position = 0
    do {
      guard let piece = try handle.read(upToCount: 1 << 16), !piece.isEmpty else {
        isAtEnd = true
        return
      }
      bytesRead += piece.count
      waiting.append(contentsOf: piece)
    } catch {
      throw ImportError(file: name, line: 0, reason: "cannot be read on: \(error)")
    }
  }
}
