import Foundation
import Glibc
import TestKit

/// `keyway serve` as a child process of a benchmark, which stops and restarts it, always on the same port.
///
/// One thread starts and ends it. The process ends with this object at the latest.
final class KeywayServer {
  /// The path of this program.
  static let thisProgram = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
  /// The path of the server, in the same directory as this program.
  static let keyway = URL(fileURLWithPath: thisProgram).deletingLastPathComponent().appendingPathComponent("keyway")
    .path

  /// The port, which is the same for every start.
  let port: UInt16
  private let program: String
  private let arguments: [String]
  private let output: ChildProcess.Output
  private var process: ChildProcess?

  /// Creates a server that is not started yet; `arguments` are used for every start.
  init(program: String = keyway, _ arguments: [String], output: ChildProcess.Output) throws {
    (self.program, self.arguments, self.output) = (program, arguments, output)
    port = try LoopbackPort.free()
  }

  deinit { process?.send(SIGKILL) }

  /// Starts it with further settings, and returns at once.
  func start(settings: [String: String] = [:]) throws {
    let flags = settings.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
    process = try ChildProcess(
      program, ["serve", "--port", "\(port)"] + arguments + flags, output: output, name: "keyway serve")
  }

  /// Waits until it serves, after its recovery. Throws if it exits before that, or takes longer than `seconds`.
  func awaitReady(seconds: Double) throws {
    try process?.awaitReady(seconds: seconds) {
      try WireConnection(SocketAddress(port: port), timeoutSeconds: seconds).must(WireRequest("GET", "/readyz"))
    }
  }

  /// Sends a signal without waiting.
  func send(_ signal: Int32) { process?.send(signal) }

  /// Sends a signal, and waits at most `seconds` for the process to exit. Returns the exit status, which is 128 plus
  /// the signal's number if a signal ended the process.
  @discardableResult
  func end(_ signal: Int32, within seconds: Double) throws -> Int32 {
    send(signal)
    return try process?.exitStatus(within: seconds) ?? 0
  }
}

/// The memory and the CPU time of a process, from /proc.
struct ProcessFigures: Hashable, Sendable {
  /// The resident memory, in bytes.
  var residentBytes: Int
  /// The user and system time since the process started, in seconds.
  var cpuSeconds: Double

  /// Returns the present figures of the process that `--pid` names; nil if the option is absent.
  static func ifAsked(_ pid: Int?) throws -> ProcessFigures? { try pid.map { try ProcessFigures(pid: $0) } }

  /// Reads the present figures of a process.
  init(pid: Int) throws {
    guard let memory = try? String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8),
      let times = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
      let pages = memory.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw LoopbackError("process \(pid) does not exist") }
    residentBytes = pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    // The name in parentheses may contain anything; utime and stime are the 12th and 13th fields after it.
    let fields = times[(times.lastIndex(of: ")") ?? times.startIndex)...].split(separator: " ")
    let ticks = fields.count > 13 ? (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0) : 0
    cpuSeconds = Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
