import Support

/// Bytes that a client was granted. They are given back when the last reference goes.
package final class MemoryReservation: Sendable {
  private let ledger: MemoryLedger
  private let client: ClientAddress
  private let use: MemoryUse
  private let count = Locked(0)

  init(ledger: MemoryLedger, client: ClientAddress, use: MemoryUse) {
    self.ledger = ledger
    self.client = client
    self.use = use
  }

  deinit {
    // Less is never refused.
    try? ledger.change(by: -count.withLock { $0 }, of: client, use)
  }

  /// How many bytes are reserved.
  package var byteCount: Int { count.withLock { $0 } }

  /// Makes it more or fewer bytes. More may be refused; the reservation is then what it was.
  package func resize(to bytes: Int) throws(MemoryRefusal) {
    try count.withLock { count throws(MemoryRefusal) in
      try ledger.change(by: bytes - count, of: client, use)
      count = bytes
    }
  }
}
