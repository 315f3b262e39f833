import Locking

/// How many files are open to be sent, in all and for each client: a client that takes an answer slowly holds the
/// descriptor of its file, and those are few.
package final class OpenFiles: Sendable {
  /// The bounds.
  package struct Limits: Sendable {
    /// Of all clients. `files.open`.
    package var files = 128
    /// Of one client. `files.openPerClient`.
    package var filesPerClient = 32

    /// The defaults.
    package init() {}
  }

  /// A file that is counted for a client, until its last reference goes.
  package final class Lease: Sendable {
    private let files: OpenFiles
    private let client: ClientAddress

    fileprivate init(_ files: OpenFiles, _ client: ClientAddress) {
      self.files = files
      self.client = client
    }

    deinit { files.end(client) }
  }

  private struct State {
    var total = 0
    var byClient: [ClientAddress: Int] = [:]
  }

  private let limits: Limits
  private let state = Locked(State())

  /// None is open yet.
  package init(limits: Limits) { self.limits = limits }

  /// How many are open.
  package var count: Int { state.withLock { $0.total } }

  /// Counts a file for a client; nil where it, or all clients together, have as many as they may.
  package func lease(for client: ClientAddress) -> Lease? {
    let isCounted = state.withLock { state in
      let held = state.byClient[client] ?? 0
      guard state.total < limits.files, held < limits.filesPerClient else { return false }
      state.total += 1
      state.byClient[client] = held + 1
      return true
    }
    return isCounted ? Lease(self, client) : nil
  }

  private func end(_ client: ClientAddress) {
    state.withLock { state in
      state.total -= 1
      let held = (state.byClient[client] ?? 1) - 1
      state.byClient[client] = held == 0 ? nil : held
    }
  }
}
