import Glibc
import Support
import UnixSignals

/// The signals that stop a server or make it read its settings again, trapped as long as the process lives.
///
/// Until it is trapped, a signal has its default action, which ends the process. So this is created first, long before
/// there is a server, and keeps the requests until a server receives them. As in the kernel, a signal that comes again
/// before it was received counts once.
final class ServerSignals: Sendable {
  /// The request of a signal.
  enum Request: Hashable, Sendable {
    /// `SIGTERM` or `SIGINT`: stop the server.
    case stop
    /// `SIGHUP`: read the keys and the settings again.
    case reload
  }

  private enum State {
    /// There is no server, so that a request to stop is carried out at once. Requests to reload are pending.
    case idle(pending: Set<Request>)
    /// A server is starting, and will receive the pending requests.
    case keeping(pending: Set<Request>)
    case receiving(@Sendable (Request) -> Void)
  }

  private let state = Locked(State.idle(pending: []))
  /// Ends the process while there is no server.
  private let stop: @Sendable () -> Void

  /// Traps the signals. `stop` is called for a request to stop while there is no server, and ends the process.
  init(stoppingBy stop: @escaping @Sendable () -> Void) async {
    self.stop = stop
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint, .sighup)
    Task.detached { [self] in
      for await signal in signals { note(signal == .sighup ? .reload : .stop) }
    }
  }

  /// Keeps all requests from now on for a server that is about to start.
  func keep() {
    state.withLock { state in
      if case .idle(let pending) = state { state = .keeping(pending: pending) }
    }
  }

  /// Calls `body` for the pending requests, and for all later ones until `release`. It is called from any thread,
  /// possibly before this method returns.
  func receive(_ body: @escaping @Sendable (Request) -> Void) {
    let pending = state.withLock { state -> Set<Request> in
      defer { state = .receiving(body) }
      switch state {
      case .idle(let pending), .keeping(let pending): return pending
      case .receiving: return []
      }
    }
    for request in pending { body(request) }
  }

  /// Stops passing requests to the server, which has ended.
  func release() { state.withLock { $0 = .idle(pending: []) } }

  private func note(_ request: Request) {
    let action = state.withLock { state -> (@Sendable () -> Void)? in
      switch state {
      case .idle where request == .stop: return stop
      case .idle(let pending):
        state = .idle(pending: pending.union([request]))
        return nil
      case .keeping(let pending):
        state = .keeping(pending: pending.union([request]))
        return nil
      case .receiving(let body): return { body(request) }
      }
    }
    action?()
  }
}
