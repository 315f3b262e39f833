/// A request that waits to be handed to the handler once more. Usable from any thread.
///
/// The handler lets go of it at the latest when it is no longer needed: then the postponement has ended.
package final class Postponement: Sendable {
  private let pending: DeferredResponse

  init(_ pending: DeferredResponse) { self.pending = pending }

  deinit { end() }

  /// Has the request handled on the thread of its connection. The first call counts; where the server has stopped
  /// meanwhile, the request has been answered.
  package func end() { pending.respond(.again(nil)) }

  /// The same, with what the handler has found out meanwhile: `Request.outcome` when it has the request again.
  package func end(with outcome: any Sendable) { pending.respond(.again(outcome)) }

  /// Whether the client has left while it waited, or has been answered, as all are when the server stops.
  package var isAbandoned: Bool { pending.isAbandoned }
}
