import Foundation
import Store

/// A file that comes into being whole or not at all: it is written under another name beside, and renamed at the end.
final class ExportFile {
  private let path: String
  private let temporaryPath: String
  private let handle: FileHandle
  private var isFinished = false

  /// Begins a file at `path`, following symbolic links; what stands there stays until `commit`.
  init(_ path: String) throws {
    let target = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    self.path = target.path
    var status = stat()
    if stat(target.path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      throw CommandFailure("\(path): is no regular file; without --output an export goes to standard output")
    }
    let name = ".\(target.lastPathComponent).\(UUID().uuidString.prefix(8)).part"
    temporaryPath = target.deletingLastPathComponent().appendingPathComponent(name).path
    let descriptor = open(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else {
      throw CommandFailure("\(path): cannot be written: \(String(cString: strerror(errno)))")
    }
    handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  deinit {
    if !isFinished { unlink(temporaryPath) }
  }

  func write(_ bytes: [UInt8]) throws {
    do {
      try handle.write(contentsOf: Data(bytes))
    } catch {
      throw CommandFailure("\(path): cannot be written: \(error.systemReason)")
    }
  }

  func restart() throws {
    try handle.truncate(atOffset: 0)
  }

  /// Puts the file in its place.
  func commit() throws {
    try handle.synchronize()
    guard rename(temporaryPath, path) == 0 else {
      throw CommandFailure("\(path): cannot be written: \(String(cString: strerror(errno)))")
    }
    isFinished = true
  }
}
