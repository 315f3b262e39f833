import Foundation
import Glibc

/// A server that a benchmark starts for itself, on a port of the loopback address and with a log of its own. It ends
/// when nobody holds this any more.
final class PeerProcess {
  /// How long a server may take to end when it is asked to, before it is made to.
  static let endSeconds = 5.0

  /// What errors call it.
  let name: String
  private let process: Process
  private let log: String

  /// Starts `executable`; what it says goes to a file in `directory`.
  init(_ name: String, executable: String, _ arguments: [String], directory: String) throws(FanoutError) {
    self.name = name
    log = "\(directory)/\(name).log"
    process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    guard FileManager.default.createFile(atPath: log, contents: nil), let output = FileHandle(forWritingAtPath: log)
    else { throw FanoutError("\(log) cannot be written") }
    process.standardOutput = output
    process.standardError = output
    do { try process.run() } catch { throw FanoutError("\(executable): \(error)") }
  }

  deinit {
    process.terminate()
    let end = MonotonicClock.now() + UInt64(Self.endSeconds * 1e9)
    while process.isRunning, MonotonicClock.now() < end { usleep(10_000) }
    // A zombie of this process until then: the number is nobody else's.
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  /// Its number.
  var pid: Int { Int(process.processIdentifier) }

  /// Waits until `attempt` succeeds, at most `seconds` long and while the process lives.
  func awaitReady(seconds: Double, _ attempt: () throws(FanoutError) -> Void) throws(FanoutError) {
    let end = MonotonicClock.now() + UInt64(seconds * 1e9)
    while true {
      do throws(FanoutError) { return try attempt() } catch {
        guard !Task.isCancelled else { throw FanoutError("interrupted") }
        guard process.isRunning, MonotonicClock.now() < end else {
          let state = process.isRunning ? "is not ready" : "has ended"
          throw FanoutError("\(name) \(state): \(error)\n\(lastWords)")
        }
      }
      usleep(50_000)
    }
  }

  /// The end of its log.
  private var lastWords: String {
    let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    return text.split { $0.isNewline }.suffix(5).joined(separator: "\n")
  }

  /// Where a program is in `PATH`; nil where it is not installed.
  static func find(_ program: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    let places = path.split(separator: ":").map { String($0) } + ["/usr/sbin", "/usr/local/sbin"]
    return places.map { $0 + "/" + program }.first { access($0, X_OK) == 0 }
  }
}
