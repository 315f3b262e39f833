import Glibc

/// An open file of the operating system, closed with its last owner. Every call says which file failed and why.
final class SystemFile: Sendable {
  let path: String
  let descriptor: Int32

  /// Opens a file; with `O_CREAT` among the flags it is made for its owner alone to read and write, whatever the umask
  /// would allow.
  init(_ path: String, _ flags: Int32) throws(JournalError) {
    self.path = path
    descriptor = open(path, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(path, "cannot be opened") }
  }

  deinit {
    _ = close(descriptor)
  }

  /// How many bytes it has.
  func size() throws(JournalError) -> Int {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Self.failure(path, "cannot be looked at") }
    return Int(status.st_size)
  }

  /// Writes all bytes at the end of what was written before.
  func write(_ bytes: [UInt8]) throws(JournalError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw Self.failure(path, "cannot be written") }
      rest = rest.dropFirst(count)
    }
  }

  /// Writes all bytes at a place. False where that fails.
  func write(_ bytes: [UInt8], at offset: Int) -> Bool {
    bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) } == bytes.count
  }

  /// Reads as many bytes as there are, `count` at most.
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

  /// Returns once what was written is on the disk.
  func sync() throws(JournalError) {
    guard fdatasync(descriptor) == 0 else {
      throw .untrusted("\(path): cannot be synced: \(String(cString: strerror(errno)))")
    }
  }

  /// Has the next read come from the disk, and not from what the kernel remembers: after a sync that failed, these two
  /// may differ.
  static func dropCache(of path: String) {
    guard let file = try? SystemFile(path, O_RDONLY) else { return }
    _ = posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED)
  }

  /// Returns once the names in a directory are on the disk.
  static func syncDirectory(_ path: String) throws(JournalError) {
    try SystemFile(path, O_RDONLY | O_DIRECTORY).syncAll()
  }

  private func syncAll() throws(JournalError) {
    guard fsync(descriptor) == 0 else {
      throw .untrusted("\(path): cannot be synced: \(String(cString: strerror(errno)))")
    }
  }

  /// Takes from other users whatever they may do with a file or directory; what the group may, stays. That it cannot be
  /// done, for one that belongs to another user, is no reason not to go on.
  static func closeToOthers(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & 0o007 != 0, status.st_mode & S_IFMT != S_IFLNK else { return }
    _ = chmod(path, status.st_mode & 0o7770)
  }

  /// Gives a file another name in one step.
  static func rename(_ old: String, to new: String) throws(JournalError) {
    guard Glibc.rename(old, new) == 0 else { throw failure(old, "cannot be renamed to \(new)") }
  }

  /// Takes a file away; one that is not there is none already.
  static func remove(_ path: String) throws(JournalError) {
    guard unlink(path) == 0 || errno == ENOENT else { throw failure(path, "cannot be removed") }
  }

  /// Whether there is a file or directory of this name.
  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Makes a directory with all above it, for its owner alone; one that is there is made already.
  static func makeDirectory(_ path: String) throws(JournalError) {
    for end in path.indices.filter({ path[$0] == "/" }) + [path.endIndex] {
      let made = String(path[..<end])
      guard !made.isEmpty, !exists(made) else { continue }
      guard mkdir(made, 0o700) == 0 || errno == EEXIST else { throw failure(made, "cannot be made") }
    }
  }

  /// The names in a directory, in order.
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
}
