import Store
import Synchronization

/// Whether the server takes work: not before the store has read its journal, and not once the server drains.
final class Readiness: Sendable {
  private let store: Store
  private let draining = Atomic(false)
  private let announced = Atomic(false)

  /// The readiness of a server over a store.
  init(of store: Store) {
    self.store = store
  }

  /// Whether the server is about to stop, also while it still takes work.
  var isDraining: Bool { announced.load(ordering: .relaxed) }

  /// From now on it is known that the server is about to stop.
  func announceDraining() { announced.store(true, ordering: .relaxed) }

  /// From now on the server takes no new work.
  func beginDraining() {
    announceDraining()
    draining.store(true, ordering: .relaxed)
  }

  /// Whether new work should come: the same as `check`, and throws `draining` as soon as that is announced, and
  /// `store-unavailable` where writes are refused, too, unless that is tolerated: reading goes on meanwhile.
  func checkWrites(toleratingRefusals isTolerated: Bool) throws(Problem) {
    if isDraining { throw Self.draining }
    try check()
    if case .unavailable(let reason) = store.condition, !isTolerated {
      throw Problem(.storeUnavailable, "writes are refused, reading goes on: \(reason)")
    }
  }

  private static var draining: Problem { Problem(.draining, "the server is about to stop") }

  /// Throws `draining`, or `store-unavailable` with how far the store has come in reading its journal.
  func check() throws(Problem) {
    if draining.load(ordering: .relaxed) { throw Self.draining }
    if case .recovering(let progress) = store.condition {
      throw Problem(.storeUnavailable, "the store is being read: \(progress)")
    }
  }
}
