import Foundation
import Glibc

/// A program that runs as a child process, with its output in files, so that it never waits for a reader of a pipe.
///
/// It does not outlive its object: it then gets SIGTERM, and SIGKILL if it does not end.
package final class ChildProcess {
  /// The destination of a program's output.
  package enum Output {
    /// Files of this object: standard output and standard error apart.
    case captured
    /// The end of one file, for both.
    case log(String)
    /// A file of this object for standard output; the standard error of this process.
    case errorsShown
  }

  /// The seconds that a program may take to end after its object has gone, before it is killed.
  private static let endSeconds = 10.0

  private let process: SpawnedProcess
  private let name: String
  private let outputFile: String
  private let errorFile: String?
  /// The directory of the files; nil if the output goes to a given file.
  private let scratch: ScratchDirectory?

  /// Starts a program. By default, `environment` and `folder` are those of this process. Errors name it by `name`, or
  /// by its file.
  package init(
    _ program: String, _ arguments: [String], environment: [String: String]? = nil, folder: String? = nil,
    output: Output = .captured, name: String? = nil
  ) throws(LoopbackError) {
    self.name = name ?? URL(fileURLWithPath: program).lastPathComponent
    guard access(program, X_OK) == 0 else { throw LoopbackError("\(program) is missing, or no program") }
    switch output {
    case .captured, .errorsShown:
      let directory = try ScratchDirectory()
      scratch = directory
      outputFile = directory.file("out")
      if case .captured = output { errorFile = directory.file("err") } else { errorFile = nil }
    case .log(let file): (scratch, outputFile, errorFile) = (nil, file, file)
    }
    let descriptor = try Self.appending(to: outputFile)
    defer { close(descriptor) }
    let errorDescriptor = if let errorFile { try Self.appending(to: errorFile) } else { dup(STDERR_FILENO) }
    defer { close(errorDescriptor) }
    process = try SpawnedProcess(
      program, arguments, environment: environment, folder: folder, output: descriptor, errors: errorDescriptor)
  }

  private static func appending(to file: String) throws(LoopbackError) -> Int32 {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw LoopbackError(call: "open \(file)") }
    return descriptor
  }

  deinit {
    send(SIGTERM)
    guard !Deadline(seconds: Self.endSeconds).awaits({ !isRunning }) else { return }
    send(SIGKILL)
    _ = Deadline().awaits { !isRunning }
  }

  /// Returns the path of a program in `PATH`, or nil if it is not installed.
  package static func find(_ program: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    let places = path.split(separator: ":").map { String($0) } + ["/usr/sbin", "/usr/local/sbin"]
    return places.map { $0 + "/" + program }.first { access($0, X_OK) == 0 }
  }

  // MARK: Its life

  /// The number of the process.
  package var pid: Int32 { process.pid }

  /// True while it runs.
  package var isRunning: Bool { process.isRunning }

  /// Sends a signal and does not wait.
  package func send(_ signal: Int32) { process.send(signal) }

  /// Waits for its end and returns its exit status; for one that a signal ended, 128 plus the signal's number. Throws
  /// if it has neither ended nor written anything for so many seconds.
  package func exitStatus(within seconds: Double = Deadline.patienceSeconds) throws(LoopbackError) -> Int32 {
    _ = Deadline.awaits(seconds: seconds, progress: { writtenBytes }) { !process.isRunning }
    guard let status = process.exitStatus else {
      throw LoopbackError(.timedOut, "\(name) has not ended; it wrote:\n\(output)\n\(errors)")
    }
    return status
  }

  /// Waits until `attempt` does not throw. Throws its last error, with the end of the output, if the program ends
  /// before that, the task is cancelled, or so many seconds have passed.
  package func awaitReady(
    seconds: Double = Deadline.patienceSeconds, _ attempt: () throws -> Void
  ) throws(LoopbackError) {
    let deadline = Deadline(seconds: seconds)
    while true {
      do { return try attempt() } catch {
        guard !Task.isCancelled else { throw LoopbackError(.interrupted) }
        guard process.isRunning, !deadline.hasPassed else {
          let state = process.isRunning ? "is not ready" : "has ended"
          let words = (errorFile == nil ? output : errors).split { $0.isNewline }.suffix(5).joined(separator: "\n")
          throw LoopbackError("\(name) \(state): \(error)\n\(words)")
        }
      }
      usleep(2000)
    }
  }

  // MARK: Its output

  /// Its standard output so far.
  package var output: String { Self.text(of: outputFile) }

  /// Its standard error so far; empty if that is not captured.
  package var errors: String { errorFile.map(Self.text) ?? "" }

  /// The whole lines of its output so far.
  package var lines: [String] {
    output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
  }

  /// The number of bytes that it has written so far.
  private var writtenBytes: Int64 {
    [outputFile, errorFile].reduce(0) { sum, file in
      var status = stat()
      return file.map { stat($0, &status) } == 0 ? sum + Int64(status.st_size) : sum
    }
  }

  private static func text(of file: String) -> String {
    (FileManager.default.contents(atPath: file)).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  /// Waits until its output has at least so many whole lines, and returns them.
  package func lines(_ count: Int) throws(LoopbackError) -> [String] {
    try lines { $0.count >= count }
  }

  /// Waits until `isEnough` holds for its whole lines, and returns them. Throws if it writes nothing for
  /// `Deadline.patienceSeconds`, or ends before that.
  package func lines(until isEnough: ([String]) -> Bool) throws(LoopbackError) -> [String] {
    var lines = lines
    let isDone = Deadline.awaits(progress: { writtenBytes }) {
      lines = self.lines
      return isEnough(lines) || !isRunning && self.lines == lines
    }
    guard isDone, isEnough(lines) else {
      throw LoopbackError("\(name) did not write what was awaited:\n\(output)\n\(errors)")
    }
    return lines
  }
}
