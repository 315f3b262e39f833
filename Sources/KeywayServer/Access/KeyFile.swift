import Foundation

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

  /// Returns what an operator is warned of where others than the owner can read the file, and its keys are secret.
  func warning(of keys: KeySet) -> String? {
    keys.holdsSecret ? SecretFile.warning(of: path, named: "access.keys") : nil
  }

  private static func version(of path: String) -> Version? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Version(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), bytes: Int64(status.st_size),
      seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec)
  }
}

/// Files whose content nobody but their owner should read.
package enum SecretFile {
  /// Returns what an operator is warned of where the group or others can read a file, which a setting names; nil where
  /// they cannot, or there is no such file. It is only a warning: some systems hand secrets to programs in files that a
  /// group can read.
  package static func warning(of path: String, named setting: String) -> String? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & 0o044 != 0 else { return nil }
    let mode = String(status.st_mode & 0o777, radix: 8)
    let isPlain = path.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || "0123456789/._-".unicodeScalars.contains($0)
    }
    let argument = isPlain ? path : "'\(path.replacing("'", with: #"'\''"#))'"
    return
      "\(setting): others than the owner can read the secret in '\(path)' (mode \(mode)); run chmod 600 \(argument)"
  }
}
