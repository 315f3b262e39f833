import Foundation

/// A file or standard input, read piece by piece.
struct InputFile {
  /// The name that stands for standard input.
  static let standardInput = "-"

  let name: String
  /// How large the file is; nil where that is not known.
  let size: Int?
  private(set) var bytesRead = 0
  private let handle: FileHandle

  /// Opens a file, or standard input for `-`. Throws a `CommandFailure`.
  init(_ name: String) throws {
    guard name != Self.standardInput else {
      self.name = "stdin"
      handle = .standardInput
      size = nil
      return
    }
    guard let handle = FileHandle(forReadingAtPath: name) else {
      throw CommandFailure("\(name): there is no such file, or it cannot be read")
    }
    self.name = name
    self.handle = handle
    size = (try? FileManager.default.attributesOfItem(atPath: name))?[.size] as? Int
  }

  /// The next piece; nil at the end.
  mutating func next() throws(ImportError) -> Data? {
    do {
      guard let piece = try handle.read(upToCount: 1 << 16), !piece.isEmpty else { return nil }
      bytesRead += piece.count
      return piece
    } catch {
      throw ImportError(reason: "cannot be read on: \(error)")
    }
  }
}
