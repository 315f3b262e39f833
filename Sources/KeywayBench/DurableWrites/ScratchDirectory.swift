import Foundation
import Glibc

/// A new directory for a while.
struct ScratchDirectory: Hashable, Sendable {
  /// Where it is: an absolute path.
  let path: String

  /// Makes one in `parent`, under a name that nothing else has.
  init(in parent: String) throws(FanoutError) {
    var template = Array((URL(fileURLWithPath: parent).path + "/keyway-bench-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else {
      throw FanoutError(call: "make a directory in \(parent)")
    }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Removes it with everything in it.
  func remove() { try? FileManager.default.removeItem(atPath: path) }

  /// Makes a directory in it, and gives its path.
  func directory(_ name: String) throws(FanoutError) -> String {
    guard mkdir("\(path)/\(name)", 0o700) == 0 else { throw FanoutError(call: "make the directory \(name)") }
    return "\(path)/\(name)"
  }

  /// Writes a file in it, and gives its path.
  func file(_ name: String, _ text: String) throws(FanoutError) -> String {
    let file = "\(path)/\(name)"
    do { try text.write(toFile: file, atomically: false, encoding: .utf8) } catch {
      throw FanoutError("\(file): \(error)")
    }
    return file
  }
}
