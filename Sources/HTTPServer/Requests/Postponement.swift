import Synchronization

/// A request that waits to be handed to the handler once more. Usable from any thread.
///
/// The handler lets go of it at the latest when it is no longer needed: then the postponement has ended.
package final class Postponement: Sendable {
  private enum Waiting: Sendable {
    case connection(DeferredResponse)
    case carried(CarriedRequest)
  }

  private let waiting: Waiting
  private let hasEnded = Atomic(false)

  init(_ pending: DeferredResponse) { waiting = .connection(pending) }

  init(_ carried: CarriedRequest) { waiting = .carried(carried) }

  deinit { end(nil) }

  /// Has the request handled on the thread of its connection; one that was carried in another, on a thread for those.
  /// The first call counts; where the server has stopped meanwhile, the request has been answered.
  package func end() { end(nil) }

  /// The same, with what the handler has found out meanwhile: `Request.outcome` when it has the request again.
  package func end(with outcome: any Sendable) { end(outcome) }

  private func end(_ outcome: (any Sendable)?) {
    guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
    switch waiting {
    case .connection(let pending): pending.respond(.again(outcome))
    case .carried(let carried): carried.resume(with: outcome)
    }
  }

  /// Whether the client has left while it waited, or has been answered, as all are when the server stops.
  package var isAbandoned: Bool {
    switch waiting {
    case .connection(let pending): pending.isAbandoned
    case .carried(let carried): hasEnded.load(ordering: .acquiring) || carried.isAbandoned
    }
  }
}
