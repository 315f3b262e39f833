import Glibc

/// Holds a store's directory for one process, until this is let go or the process ends, however it does.
final class DirectoryLock: Sendable {
  private let file: SystemFile

  /// Takes the lock file at a path, or throws `inUse` with the process that has it.
  init(_ path: String) throws(JournalError) {
    file = try SystemFile(path, O_RDWR | O_CREAT)
    guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let holder = String(decoding: (try? file.read(32)) ?? [], as: UTF8.self)
      let name = holder.isEmpty ? "another process" : "process \(holder.prefix { $0.isNumber })"
      throw .inUse("the store is in use by \(name) (it holds \(path))")
    }
    // For operators who ask which process has it: that it cannot be written is no reason not to go on.
    _ = ftruncate(file.descriptor, 0)
    _ = file.write(Array("\(getpid())\n".utf8), at: 0)
  }

  /// Lets the directory go.
  func release() {
    _ = flock(file.descriptor, LOCK_UN)
  }
}
