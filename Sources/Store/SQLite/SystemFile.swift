import CLinux
import Foundation
import Glibc
import Support

/// An open file of the operating system, closed with its last reference. Every error names the file and the reason.
final class SystemFile: Sendable {
  let path: String
  let descriptor: Int32

  /// Opens a file. With `O_CREAT` among the flags, it is created readable and writable by its owner only, whatever the
  /// umask allows.
  init(_ path: String, _ flags: Int32) throws(JournalError) {
    self.path = path
    descriptor = open(path, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(path, "cannot be opened") }
  }

  deinit {
    _ = close(descriptor)
  }

  /// Returns the size in bytes.
  func size() throws(JournalError) -> Int {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Self.failure(path, "cannot be examined") }
    return Int(status.st_size)
  }

  /// Writes all bytes at the current position.
  func write(_ bytes: [UInt8]) throws(JournalError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw Self.failure(path, "cannot be written") }
      rest = rest.dropFirst(count)
    }
  }

  /// Writes all bytes at an offset. Returns false if that fails.
  func write(_ bytes: [UInt8], at offset: Int) -> Bool {
    bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) } == bytes.count
  }

  /// Reads up to `count` bytes, fewer only at the end of the file.
  func read(_ count: Int) throws(JournalError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let read = bytes.withUnsafeMutableBytes { buffer in
        Glibc.read(descriptor, buffer.baseAddress?.advanced(by: filled), count - filled)
      }
      if read < 0, errno == EINTR { continue }
      guard read >= 0 else { throw Self.failure(path, "cannot be read") }
      guard read > 0 else { break }
      filled += read
    }
    bytes.removeLast(count - filled)
    return bytes
  }

  /// Returns once the written data is on the disk.
  func sync() throws(JournalError) {
    guard fdatasync(descriptor) == 0 else {
      throw .untrusted("\(path): cannot be synced: \(String(cString: strerror(errno)))")
    }
  }

  /// Drops the page cache of a file so that the next read hits the disk: after a failed sync, the two may differ.
  static func dropCache(of path: String) {
    guard let file = try? SystemFile(path, O_RDONLY) else { return }
    _ = posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED)
  }

  /// Returns once the entries of a directory are on the disk.
  static func syncDirectory(_ path: String) throws(JournalError) {
    try SystemFile(path, O_RDONLY | O_DIRECTORY).syncAll()
  }

  private func syncAll() throws(JournalError) {
    guard fsync(descriptor) == 0 else {
      throw .untrusted("\(path): cannot be synced: \(String(cString: strerror(errno)))")
    }
  }

  /// Removes the permissions of other users from a file or directory; those of the group stay. An error, as for a file
  /// of another owner, is ignored.
  static func closeToOthers(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & 0o007 != 0, status.st_mode & S_IFMT != S_IFLNK else { return }
    _ = chmod(path, status.st_mode & 0o7770)
  }

  /// Renames a file atomically.
  static func rename(_ old: String, to new: String) throws(JournalError) {
    guard Glibc.rename(old, new) == 0 else { throw failure(old, "cannot be renamed to \(new)") }
  }

  /// Removes a file, if it exists.
  static func remove(_ path: String) throws(JournalError) {
    guard unlink(path) == 0 || errno == ENOENT else { throw failure(path, "cannot be removed") }
  }

  /// Returns true if a file or directory of this name exists.
  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Creates a directory and its missing parents, accessible by the owner only. An existing directory is left as it is.
  static func makeDirectory(_ path: String) throws(JournalError) {
    for end in path.indices.filter({ path[$0] == "/" }) + [path.endIndex] {
      let made = String(path[..<end])
      guard !made.isEmpty, !exists(made) else { continue }
      guard mkdir(made, 0o700) == 0 || errno == EEXIST else { throw failure(made, "cannot be made") }
    }
  }

  /// Returns the names in a directory, sorted.
  static func names(in path: String) throws(JournalError) -> [String] {
    guard let directory = opendir(path) else { throw failure(path, "cannot be read") }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  private static func failure(_ path: String, _ what: String) -> JournalError {
    .refused("\(path): \(what): \(String(cString: strerror(errno)))")
  }

  // MARK: Files by name

  /// Returns the size of a file in bytes; 0 if it does not exist.
  static func size(of path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Renames a file or directory if it exists. Returns false if it does not.
  static func renameIfThere(_ old: String, to new: String) throws(JournalError) -> Bool {
    guard exists(old) else { return false }
    try rename(old, to: new)
    return true
  }

  /// Removes a directory with its contents, if it exists.
  static func removeDirectory(_ path: String) throws(JournalError) {
    guard exists(path) else { return }
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      throw .refused("\(path): cannot be removed: \(error.systemReason)")
    }
  }

  /// Formats a time, in milliseconds since 1970, for the names of files that are moved aside: `20261121T134500Z`.
  static func timeName(_ milliseconds: Int64) -> String {
    var seconds = time_t(milliseconds / 1000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let date = [(parts.tm_year + 1900, 4), (parts.tm_mon + 1, 2), (parts.tm_mday, 2)]
    let time = [parts.tm_hour, parts.tm_min, parts.tm_sec]
    return date.map { $0.padded(to: $1) }.joined() + "T" + time.map { $0.padded(to: 2) }.joined() + "Z"
  }

  /// Returns a name that no file has: this one, or this one followed by `-2`, `-3` and so on.
  static func unusedName(_ path: String) -> String {
    guard exists(path) else { return path }
    var number = 2
    while exists("\(path)-\(number)") { number += 1 }
    return "\(path)-\(number)"
  }
}

extension Error {
  /// The reason in the system's words (`Permission denied`); the description of a Foundation error has only a domain
  /// and a number.
  package var systemReason: String {
    if let error = self as? POSIXError { return String(cString: strerror(error.code.rawValue)) }
    let error = self as NSError
    if error.domain == NSPOSIXErrorDomain { return String(cString: strerror(Int32(clamping: error.code))) }
    if let cause = error.userInfo[NSUnderlyingErrorKey] as? any Error { return cause.systemReason }
    return error.localizedDescription
  }
}

/// The identity of a file, independent of its name: another file of the same name has another identity.
struct FileIdentity: Hashable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  /// Returns the identity of the file or directory with a name; nil if it does not exist. Does not read its times: for
  /// a log that is written in place, that would cost each sync a second write, of the times.
  init?(path: String) { self.init(AT_FDCWD, path) }

  /// Returns the identity of an open file.
  init?(_ file: SystemFile) { self.init(file.descriptor, "") }

  private init?(_ descriptor: CInt, _ path: String) {
    var (device, inode): (UInt64, UInt64) = (0, 0)
    guard keyway_identify_file(descriptor, path, &device, &inode) else { return nil }
    (self.device, self.inode) = (device, inode)
  }
}
