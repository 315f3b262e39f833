import Foundation
import TestKit

/// A disk that fails on demand, for the processes that are started with its `environment`: see Scripts/faults.c.
final class FaultyDisk {
  /// The kind of failure.
  enum Fault: String, CaseIterable {
    case none = "-"
    case full = "F"
    /// Full in the middle of a write.
    case fullHalfway = "H"
    case readOnly = "R"
    case writeError = "W"
    case syncError = "S"
    /// Only the log fails to sync.
    case logSyncError = "L"
    /// Half of a write succeeds, then the process is killed.
    case torn = "T"
    /// The process is killed before it syncs.
    case killedBeforeSync = "K"

    /// The faults that do not kill the process.
    static let survivable = [Fault.full, .fullHalfway, .readOnly, .writeError, .syncError, .logSyncError]
  }

  private let folder: ScratchDirectory
  private let control: FileHandle
  /// The directory of the files on this disk.
  let directory: String

  /// Creates a working disk, with a directory for its files.
  init(directory: String) throws {
    self.directory = directory
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    folder = try ScratchDirectory()
    try PreloadedLibrary.build("faults.c", to: folder.file("faults.so"))
    _ = try folder.write(String(repeating: Fault.none.rawValue, count: 4096), to: "control")
    control = try FileHandle(forUpdating: URL(fileURLWithPath: folder.file("control")))
  }

  /// The environment of the processes that use the disk.
  var environment: [String: String] {
    [
      "LD_PRELOAD": folder.file("faults.so"), "FAULTS_CONTROL": folder.file("control"), "FAULTS_DIRECTORY": directory,
    ]
  }

  /// Makes the disk fail in this way from now on.
  func set(_ fault: Fault) throws {
    try control.seek(toOffset: 0)
    try control.write(contentsOf: Data(fault.rawValue.utf8))
  }
}

/// Libraries that intercept a program's system calls, built from a script in C.
enum PreloadedLibrary {
  /// Builds a library for `LD_PRELOAD`.
  static func build(_ script: String, to path: String) throws {
    let compilers =
      ["/usr/bin/clang", "/usr/bin/cc", "/opt/swift/usr/bin/clang"]
      + (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/clang" }
    guard let compiler = compilers.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else {
      throw LoopbackError("there is no C compiler; Swift on Linux needs one, too")
    }
    let result = try ChildProcess.run(
      compiler, ["-shared", "-fPIC", "-O1", "-o", path, PackageFolder.script(script), "-ldl"])
    guard result.status == 0 else { throw LoopbackError(result.errors) }
  }
}
