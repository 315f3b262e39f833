import CCurl
import Support

/// The commands to the thread of all transfers, and the means to wake it.
///
/// `state` is guarded by its lock, which is taken while no other is held.
final class TransferQueue: Sendable {
  /// A command; each transfer is started once.
  enum Command {
    case start(TransferCore)
    case resume(TransferCore)
    case cancel(TransferCore)
    case stop
  }

  /// libcurl's set of transfers. Its thread alone uses it, but for `curl_multi_wakeup`, which libcurl lets any thread
  /// call; that is done under the lock under which the thread takes it away before it frees it.
  struct Multi: @unchecked Sendable {
    let handle: UnsafeMutableRawPointer
  }

  private struct State {
    var multi: Multi?
    var commands: [Command] = []
    /// Transfers that were started and have not been let go of.
    var count = 0
  }

  private let state: Locked<State>
  /// The set of transfers of the thread that takes the commands.
  let multi: Multi

  /// Makes a queue, or returns nil if there is no memory or descriptor left.
  init?() {
    guard Self.isInitialized, let handle = curl_multi_init() else { return nil }
    multi = Multi(handle: handle)
    state = Locked(State(multi: multi))
  }

  /// libcurl is initialized once in a process; Foundation may have done so before, which is counted.
  private static let isInitialized = curl_global_init(Int(CURL_GLOBAL_SSL)) == CURLE_OK

  /// The number of transfers under way.
  var count: Int { state.withLock { $0.count } }

  /// Starts a transfer. False if there are `limit` already, or the thread has ended.
  func start(_ core: TransferCore, limit: Int) -> Bool {
    state.withLock { state in
      guard let multi = state.multi, state.count < limit else { return false }
      state.count += 1
      state.commands.append(.start(core))
      curl_multi_wakeup(multi.handle)
      return true
    }
  }

  /// Posts a command. It has no effect once the thread has ended.
  func post(_ command: Command) {
    state.withLock { state in
      guard let multi = state.multi else { return }
      state.commands.append(command)
      curl_multi_wakeup(multi.handle)
    }
  }

  // MARK: The thread

  /// Takes the commands, in the order in which they were posted.
  func takeCommands() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }

  /// Notes that a transfer has ended.
  func noteEnd() { state.withLock { $0.count -= 1 } }

  /// Frees the set, which has no transfers any more. Returns the commands that will not be carried out.
  func close() -> [Command] {
    let commands = state.withLock { state in
      defer { (state.multi, state.commands) = (nil, []) }
      return state.commands
    }
    curl_multi_cleanup(multi.handle)
    return commands
  }
}
