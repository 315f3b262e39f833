import Foundation
import TestKit

/// Libraries that stand between a program and the system, built of a script in C.
enum PreloadedLibrary {
  /// Builds one, to be named by `LD_PRELOAD`.
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
