import Support

/// Counts the files that are open for sending, in total and for each client: a client that reads a response slowly
/// holds the descriptor of its file, and descriptors are scarce.
package final class OpenFiles: Sendable {
  /// The limits of open files.
  package struct Limits: Sendable {
    /// The limit for all clients. `files.open`.
    package var files = 128
    /// The limit for one client. `files.openPerClient`.
    package var filesPerClient = 32

    /// Creates the default limits.
    package init() {}
  }

  /// A file that is counted for a client until the last reference is released.
  package final class Lease: Sendable {
    private let files: OpenFiles
    private let client: ClientAddress

    fileprivate init(_ files: OpenFiles, _ client: ClientAddress) {
      self.files = files
      self.client = client
    }

    deinit { files.end(client) }
  }

  private let shares: Locked<FairShares<ClientAddress>>

  /// Creates a count of no files.
  package init(limits: Limits) {
    shares = Locked(FairShares(ShareLimit(total: limits.files, perClient: limits.filesPerClient)))
  }

  /// Counts a file for a client; nil where its share of `files.open` is used up.
  package func lease(for client: ClientAddress) -> Lease? {
    let isCounted = shares.withLock { $0.take(1, for: client) == nil }
    return isCounted ? Lease(self, client) : nil
  }

  private func end(_ client: ClientAddress) { shares.withLock { $0.release(1, of: client) } }
}
