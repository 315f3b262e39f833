import Glibc

/// `keyway serve` as a child that is ended without mercy.
///
/// Mutable is the process alone; one thread starts and ends it.
final class CrashServer {
  /// The port of all its lives.
  let port: UInt16
  private let plan: CrashPlan
  private var pid: pid_t = 0

  /// A server that is not started yet.
  init(_ plan: CrashPlan) throws(CrashError) {
    self.plan = plan
    port = try CrashSocket.freePort()
  }

  deinit {
    if pid > 0 {
      kill(pid, SIGKILL)
      waitpid(pid, nil, 0)
    }
  }

  /// Starts it with these settings; comes back at once.
  func start(_ settings: [String: String]) throws(CrashError) {
    var arguments = [
      plan.program, "serve", "--port", "\(port)", "--store", plan.store, "--schema", plan.schemaFile,
    ]
    for (name, value) in settings.sorted(by: { $0.key < $1.key }) { arguments += ["--set", "\(name)=\(value)"] }
    pid = try Self.spawn(arguments, log: plan.logFile)
  }

  /// Sends a signal and gives how the process ended, in words.
  func end(_ signal: Int32, withinSeconds seconds: Int) throws(CrashError) -> String {
    kill(pid, signal)
    return try waitForEnd(withinSeconds: seconds)
  }

  /// Sends a signal and does not wait.
  func send(_ signal: Int32) { kill(pid, signal) }

  /// Waits for its end, and gives how it ended: `exit 0`, `signal 9`.
  func waitForEnd(withinSeconds seconds: Int) throws(CrashError) -> String {
    let deadline = MonotonicClock.now() + UInt64(seconds) * 1_000_000_000
    while MonotonicClock.now() < deadline {
      if let end = endIfAny() { return end }
      usleep(500)
    }
    throw .timedOut("the server has not ended within \(seconds) s")
  }

  /// How it ended; nil while it runs.
  func endIfAny() -> String? {
    guard pid > 0 else { return "never started" }
    var status: Int32 = 0
    guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
    pid = 0
    let signal = status & 0x7F
    return signal == 0 ? "exit \(status >> 8 & 0xFF)" : "signal \(signal)"
  }

  /// Waits until it serves, which is after recovery.
  func waitUntilReady() throws(CrashError) {
    let deadline = MonotonicClock.now() + UInt64(plan.patienceSeconds) * 1_000_000_000
    var last = "nobody listens"
    while MonotonicClock.now() < deadline {
      if let end = endIfAny() { throw .notUp("\(end); see \(plan.logFile)") }
      do throws(CrashError) {
        let connection = try CrashConnection(port: port, timeoutSeconds: plan.patienceSeconds)
        let answer = try connection.exchange(CrashRequest(path: "/readyz"))
        if answer.status == 200 { return }
        last = "\(answer.status) \(answer.text)"
      } catch {
        last = error.description
      }
      usleep(2000)
    }
    throw .notUp("not ready within \(plan.patienceSeconds) s: \(last)")
  }

  /// Starts a program whose output goes to the end of a file, without the signal mask of this thread.
  private static func spawn(_ arguments: [String], log: String) throws(CrashError) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0o644)
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var pid: pid_t = 0
    errno = posix_spawn(&pid, arguments[0], &actions, &attributes, words, environ)
    guard errno == 0 else { throw .call("posix_spawn") }
    return pid
  }
}
