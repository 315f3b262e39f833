import Foundation
import Tokens

/// The file of the keys, and whether it has changed since it was read.
struct KeyFile: Sendable {
  /// The longest file that is read, in bytes.
  private static let maximumBytes = 1 << 20

  /// What tells one version of a file from another.
  private struct Version: Hashable, Sendable {
    var device: UInt64 = 0
    var inode: UInt64 = 0
    var bytes: Int64 = 0
    var seconds = 0
    var nanoseconds = 0
  }

  let path: String
  private var version: Version?

  init(path: String) { self.path = path }

  /// Whether the file is another than the one that was read last. A file that is gone has not changed.
  var hasChanged: Bool { Self.version(of: path).map { $0 != version } ?? false }

  /// Reads the keys. Throws an `AccessError`; the same version is not tried again.
  mutating func read() throws(AccessError) -> KeySet {
    version = Self.version(of: path)
    guard let handle = FileHandle(forReadingAtPath: path), let data = try? handle.read(upToCount: Self.maximumBytes + 1)
    else { throw AccessError("access.keys: '\(path)' cannot be read") }
    guard data.count <= Self.maximumBytes else {
      throw AccessError("access.keys: '\(path)' has more than \(Self.maximumBytes) bytes")
    }
    do {
      return try KeySet(json: Array(data))
    } catch {
      throw AccessError("access.keys: '\(path)' is refused: \(error)")
    }
  }

  private static func version(of path: String) -> Version? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Version(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), bytes: Int64(status.st_size),
      seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec)
  }
}
