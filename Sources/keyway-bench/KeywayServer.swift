import Foundation
import Glibc
import TestKit

/// `keyway serve` as a child of a benchmark, which is ended and started again, always on the same port.
///
/// One thread starts and ends it. It does not outlive its object.
final class KeywayServer {
  /// This program.
  static let thisProgram = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
  /// The server, which lies beside this program.
  static let keyway = URL(fileURLWithPath: thisProgram).deletingLastPathComponent().appendingPathComponent("keyway")
    .path

  /// The port of all its lives.
  let port: UInt16
  private let program: String
  private let arguments: [String]
  private let output: ChildProcess.Output
  private var process: ChildProcess?

  /// A server that is not started yet; `arguments` are those of all its lives.
  init(program: String = keyway, _ arguments: [String], output: ChildProcess.Output) throws {
    (self.program, self.arguments, self.output) = (program, arguments, output)
    port = try LoopbackPort.free()
  }

  deinit { process?.send(SIGKILL) }

  /// Starts it with further settings; comes back at once.
  func start(settings: [String: String] = [:]) throws {
    let flags = settings.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
    process = try ChildProcess(
      program, ["serve", "--port", "\(port)"] + arguments + flags, output: output, name: "keyway serve")
  }

  /// Waits until it serves, which is after its recovery. Throws where it ends before, or takes longer than so many
  /// seconds.
  func awaitReady(seconds: Double) throws {
    try process?.awaitReady(seconds: seconds) {
      try WireConnection(SocketAddress(port: port), timeoutSeconds: seconds).must(WireRequest("GET", "/readyz"))
    }
  }

  /// Sends a signal and does not wait.
  func send(_ signal: Int32) { process?.send(signal) }

  /// Sends a signal, waits for the end, at most so many seconds, and gives the exit status, which for an end by a
  /// signal is 128 and its number.
  @discardableResult
  func end(_ signal: Int32, within seconds: Double) throws -> Int32 {
    send(signal)
    return try process?.exitStatus(within: seconds) ?? 0
  }
}

/// The memory and the CPU time of a process, from /proc.
struct ProcessFigures: Hashable, Sendable {
  /// Resident memory.
  var residentBytes: Int
  /// User and system time since the process began.
  var cpuSeconds: Double

  /// What they are now of the process that `--pid` names; nil where it names none.
  static func ifAsked(_ pid: Int?) throws -> ProcessFigures? { try pid.map { try ProcessFigures(pid: $0) } }

  /// What they are now.
  init(pid: Int) throws {
    guard let memory = try? String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8),
      let times = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
      let pages = memory.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw LoopbackError("there is no process \(pid)") }
    residentBytes = pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    // The name in parentheses may contain anything; utime and stime are the 12th and 13th fields behind it.
    let fields = times[(times.lastIndex(of: ")") ?? times.startIndex)...].split(separator: " ")
    let ticks = fields.count > 13 ? (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0) : 0
    cpuSeconds = Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
