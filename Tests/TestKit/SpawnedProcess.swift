import CLinux
import Foundation
import Glibc
import Support

/// A child process that this one started, and waits for.
///
/// It is started with posix_spawn(3): Foundation's `Process` copies 256 bytes of each name in `/dev/fd`, including
/// those after the last one, which can crash a process with more than 1,365 open descriptors; and a child that it
/// starts on a thread of Dispatch has all signals blocked.
final class SpawnedProcess: Sendable {
  /// The number of the process.
  let pid: Int32
  /// The status that waitpid(2) returned; nil while it runs.
  private let ending = Locked<Int32?>(nil)

  /// Starts a program with no signal blocked and with three descriptors: the given ones, and an empty input without
  /// `input`. By default, `environment` and `folder` are those of this process.
  init(
    _ program: String, _ arguments: [String], environment: [String: String]? = nil, folder: String? = nil,
    input: Int32? = nil, output: Int32, errors: Int32
  ) throws(LoopbackError) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let input {
      posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    } else {
      posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    }
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
    keyway_spawn_close_from(&actions, STDERR_FILENO + 1)
    if let folder { keyway_spawn_change_folder(&actions, folder) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var noSignals = sigset_t()
    sigemptyset(&noSignals)
    posix_spawnattr_setsigmask(&attributes, &noSignals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

    let variables = (environment ?? ProcessInfo.processInfo.environment).map { "\($0)=\($1)" }
    var pid: Int32 = 0
    let failure = Self.withCStrings([program] + arguments) { arguments in
      Self.withCStrings(variables) { posix_spawn(&pid, program, &actions, &attributes, arguments, $0) }
    }
    guard failure == 0 else {
      throw LoopbackError("\(program) cannot be started: \(String(cString: strerror(failure)))")
    }
    self.pid = pid
  }

  private static func withCStrings<Result>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
  ) -> Result {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
  }

  /// True while it runs.
  var isRunning: Bool { exitStatus == nil }

  /// Its exit status, or 128 plus the signal's number if a signal ended it; nil while it runs.
  var exitStatus: Int32? {
    ending.withLock { ending in
      var status: Int32 = 0
      if ending == nil, waitpid(pid, &status, WNOHANG) == pid { ending = status }
      return ending.map { $0 & 0x7f == 0 ? $0 >> 8 & 0xff : 128 + $0 & 0x7f }
    }
  }

  /// Sends a signal and does not wait. Does nothing if it has ended.
  func send(_ signal: Int32) {
    if isRunning { kill(pid, signal) }
  }
}
