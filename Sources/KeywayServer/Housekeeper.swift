import Dispatch
import HTTPServer
import Store

/// Lets go, every second, of what is remembered of requests and has become too old or too large, also when no request
/// comes; ends what is to end by itself; reads keys that have changed, and ends the streams of those who are no longer
/// known.
final class Housekeeper: Sendable {
  /// Short enough that a stream ends within a second after the token that it was opened with.
  private static let interval = DispatchTimeInterval.milliseconds(500)

  private let store: Store
  private let pages: PageStore
  private let idempotency: IdempotencyStore
  private let access: AccessControl
  private let streams: StreamRegistry
  private let rates: RequestRateLimiter
  private let node: Node
  private let queue = DispatchQueue(label: "keyway.housekeeper", qos: .utility)

  init(
    store: Store, pages: PageStore, idempotency: IdempotencyStore, access: AccessControl, streams: StreamRegistry,
    rates: RequestRateLimiter, node: Node
  ) {
    self.store = store
    self.pages = pages
    self.idempotency = idempotency
    self.access = access
    self.streams = streams
    self.rates = rates
    self.node = node
  }

  /// Begins, and goes on for as long as there is an owner.
  func start() {
    queue.asyncAfter(deadline: .now() + Self.interval) { [weak self] in
      guard let self else { return }
      sweep()
      start()
    }
  }

  private func sweep() {
    pages.sweep(written: store.snapshot.writtenBytes)
    idempotency.sweep()
    rates.sweep()
    access.reloadKeys()
    access.revocations.refresh()
    access.sessions.sweep(now: Int64(access.present * 1_000))
    streams.sweepCutStreams()
    node.endLeases(store, streams)
    streams.expire(streams.owners.takeInvalid(access.validity))
  }
}
