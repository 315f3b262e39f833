import CEmbeddedFiles
import Crypto
import Support

/// A file for browsers that is part of the program itself: the client library, its types, or a part of the console.
package struct BrowserFile: Sendable {
  /// Its path below `Resources`, with `/` between folders: `keyway.js`, `console/main.js`. Also its path on a server,
  /// behind a `/`.
  package let name: String
  /// The content.
  package let bytes: [UInt8]
  /// The value of its `ETag` between the quotation marks: the beginning of its SHA-256.
  package let tag: String

  /// Returns all files. They are copied and hashed at each call.
  package static func all() -> [BrowserFile] {
    var count = 0
    let files = UnsafeBufferPointer(start: keyway_browser_files(&count), count: count)
    return files.map { file in
      let bytes = Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
      var hash = SHA256()
      hash.update(bytes)
      return BrowserFile(name: String(cString: file.name), bytes: bytes, tag: hash.finalize().prefix(12).hexadecimal)
    }
  }
}
