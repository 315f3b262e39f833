import Dispatch
import ModelStore

/// Lets go, every second, of what is remembered of requests and has become too old or too large, also when no request
/// comes.
final class Housekeeper: Sendable {
  private let store: Store
  private let pages: PageStore
  private let idempotency: IdempotencyStore
  private let queue = DispatchQueue(label: "keyway.housekeeper", qos: .utility)

  init(store: Store, pages: PageStore, idempotency: IdempotencyStore) {
    self.store = store
    self.pages = pages
    self.idempotency = idempotency
  }

  /// Begins, and goes on for as long as there is an owner.
  func start() {
    queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
      guard let self else { return }
      sweep()
      start()
    }
  }

  private func sweep() {
    pages.sweep(written: store.snapshot.writtenBytes)
    idempotency.sweep()
  }
}
