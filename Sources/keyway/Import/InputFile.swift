import Foundation
import Store

/// The text of a file or of standard input as UTF-8, read piece by piece.
struct InputFile {
  /// The name that stands for standard input.
  static let standardInput = "-"

  let name: String
  /// How large the file is; nil where that is not known.
  let size: Int?
  private(set) var bytesRead = 0
  private let handle: FileHandle
  private var decoder: TextDecoder
  private var failure: ImportError?
  private var isAtEnd = false

  /// Opens a file, or standard input for `-`, in an encoding that `TextDecoder` knows. Throws a `CommandFailure`.
  init(_ name: String, encoding: String? = nil) throws {
    decoder = TextDecoder(encoding: encoding)
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

  /// The next piece, of whole characters; nil at the end. Throws where the file cannot be read on, and behind the text
  /// that is in its encoding.
  mutating func next() throws(ImportError) -> [UInt8]? {
    while failure == nil, !isAtEnd {
      let piece: Data
      do {
        piece = try handle.read(upToCount: 1 << 16) ?? Data()
      } catch {
        throw ImportError(reason: "cannot be read on: \(error.systemReason)")
      }
      bytesRead += piece.count
      isAtEnd = piece.isEmpty
      let text: [UInt8]
      (text, failure) = decoder.decode(piece, isLast: isAtEnd)
      if !text.isEmpty { return text }
    }
    if let failure { throw failure }
    return nil
  }
}
