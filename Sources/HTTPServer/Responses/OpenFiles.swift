import Support

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

  private let shares: Locked<FairShares<ClientAddress>>

  /// None is open yet.
  package init(limits: Limits) {
    shares = Locked(FairShares(ShareLimit(total: limits.files, perClient: limits.filesPerClient)))
  }

  /// Counts a file for a client; nil where its share of `files.open` is used up.
  package func lease(for client: ClientAddress) -> Lease? {
    let isCounted = shares.withLock { $0.take(1, for: client) == nil }
    return isCounted ? Lease(self, client) : nil
  }

  private func end(_ client: ClientAddress) { shares.withLock { $0.giveBack(1, of: client) } }
}
