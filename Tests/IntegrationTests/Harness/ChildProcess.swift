import Foundation
import LoopbackKit

/// A program that runs beside the tests, with its output in files, so that nobody waits for a pipe to be read.
///
/// It never outlives its object: whatever happens to the test, it is told to end, and killed where it does not.
final class ChildProcess {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private let process = Process()
  private let folder: URL
  private let name: String

  init(
    _ program: String, _ arguments: [String], environment: [String: String] = [:], folder working: String? = nil
  ) throws {
    name = URL(fileURLWithPath: program).lastPathComponent
    guard FileManager.default.isExecutableFile(atPath: program) else {
      throw Failure(description: "\(program) is missing; see the test command of the README")
    }
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for file in ["out", "err"] { try Data().write(to: folder.appendingPathComponent(file)) }
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: working ?? PackageFolder.root)
    var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("KEYWAY_") }
    variables.merge(environment) { _, given in given }
    process.environment = variables
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: folder.appendingPathComponent("out"))
    process.standardError = try FileHandle(forWritingTo: folder.appendingPathComponent("err"))
    try Self.withoutBlockedSignals { try process.run() }
  }

  /// A thread of Dispatch blocks all signals, and a program that it starts would inherit that: SIGTERM would never reach it.
  private static func withoutBlockedSignals(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
  }

  deinit {
    if process.isRunning {
      process.terminate()
      if !Deadline(seconds: 10).awaits({ !process.isRunning }) { kill(process.processIdentifier, SIGKILL) }
    }
    try? FileManager.default.removeItem(at: folder)
  }

  var pid: Int32 { process.processIdentifier }

  var isRunning: Bool { process.isRunning }

  /// What it has written so far.
  var output: String { read("out") }
  var errors: String { read("err") }

  /// The whole lines of its output so far.
  var lines: [String] { output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init) }

  private func read(_ file: String) -> String {
    (try? Data(contentsOf: folder.appendingPathComponent(file))).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// Waits for its end and gives its exit status; one that a signal ended has 128 and the signal's number.
  func exitStatus(within seconds: Double = 30) throws -> Int32 {
    guard Deadline(seconds: seconds).awaits({ !process.isRunning }) else {
      throw Failure(description: "\(name) has not ended within \(seconds) s; it wrote:\n\(output)\n\(errors)")
    }
    return process.terminationStatus + (process.terminationReason == .uncaughtSignal ? 128 : 0)
  }

  /// Waits until its output has at least so many whole lines, and gives them.
  func lines(_ count: Int, within seconds: Double = 30) throws -> [String] {
    try lines(within: seconds) { $0.count >= count }
  }

  /// Waits until its whole lines are as wanted, and gives them.
  func lines(within seconds: Double = 30, until isEnough: ([String]) -> Bool) throws -> [String] {
    var lines = lines
    let isDone = Deadline(seconds: seconds).awaits {
      lines = self.lines
      return isEnough(lines) || !isRunning && self.lines == lines
    }
    guard isDone, isEnough(lines) else {
      throw Failure(description: "\(name) did not write what was awaited:\n\(output)\n\(errors)")
    }
    return lines
  }

  /// Runs a program to its end.
  static func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:]
  ) throws -> (status: Int32, output: String, errors: String) {
    let child = try ChildProcess(program, arguments, environment: environment)
    let status = try child.exitStatus(within: 60)
    return (status, child.output, child.errors)
  }

  /// Runs `keyway` to its end.
  static func keyway(
    _ arguments: String..., environment: [String: String] = [:]
  ) throws -> (status: Int32, output: String, errors: String) {
    try run(PackageFolder.keyway, arguments, environment: environment)
  }
}
