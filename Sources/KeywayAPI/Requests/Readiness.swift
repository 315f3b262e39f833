import ModelStore
import Synchronization

/// Whether the server takes work: not before the store has read its journal, and not once the server drains.
final class Readiness: Sendable {
  private let store: Store
  private let draining = Atomic(false)

  /// The readiness of a server over a store.
  init(of store: Store) {
    self.store = store
  }

  /// Whether the server is about to stop.
  var isDraining: Bool { draining.load(ordering: .relaxed) }

  /// From now on the server takes no new work.
  func beginDraining() {
    draining.store(true, ordering: .relaxed)
  }

  /// The same as `check`, and throws `store-unavailable` where writes are refused, too: reading goes on meanwhile.
  func checkWrites() throws(Problem) {
    try check()
    if case .unavailable(let reason) = store.condition {
      throw Problem(.storeUnavailable, "writes are refused, reading goes on: \(reason)")
    }
  }

  /// Throws `draining`, or `store-unavailable` with how far the store has come in reading its journal.
  func check() throws(Problem) {
    if isDraining { throw Problem(.draining, "the server is about to stop") }
    if case .recovering(let progress) = store.condition {
      throw Problem(.storeUnavailable, "the store is being read: \(progress)")
    }
  }
}
