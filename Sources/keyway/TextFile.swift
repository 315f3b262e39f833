import CEmbeddedFiles
import Foundation
import Store

/// Files of text that a command is given.
enum TextFile {
  /// The name of the example's files, which the program has in itself.
  static let example = "example"

  /// Why a file cannot be read, as a clause.
  struct Unreadable: Error {
    let reason: String
  }

  /// The whole text. Throws a `CommandFailure` that names the file.
  static func read(_ path: String) throws -> String {
    do throws(Unreadable) {
      return try text(of: path)
    } catch {
      throw CommandFailure("\(path): \(error.reason)")
    }
  }

  /// The same, where the name of the example stands for its file in the program.
  static func read(_ path: String, orEmbedded file: keyway_embedded_file) throws -> String {
    guard path == example else { return try read(path) }
    return String(decoding: UnsafeBufferPointer(start: file.bytes, count: file.count), as: UTF8.self)
  }

  /// The whole text.
  static func text(of path: String) throws(Unreadable) -> String {
    var isFolder: ObjCBool = false
    if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
      throw Unreadable(reason: "is a folder; give the path of a file")
    }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let reason = errno == ENOENT ? "there is no such file" : "cannot be read: \(String(cString: strerror(errno)))"
      throw Unreadable(reason: reason)
    }
    let data: Data
    do {
      data = try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).readToEnd() ?? Data()
    } catch {
      throw Unreadable(reason: "cannot be read: \(error.systemReason)")
    }
    guard let text = String(data: data, encoding: .utf8) else {
      throw Unreadable(reason: "is not a text in UTF-8; save it in that encoding")
    }
    return text
  }
}
