/// The duty to answer one deferred request. Usable from any thread.
package final class Completion: Sendable {
  private let pending: PendingAnswer
  private let handler: any RequestHandler

  init(_ pending: PendingAnswer, handler: any RequestHandler) {
    self.pending = pending
    self.handler = handler
  }

  deinit {
    // Whoever let go of the last reference has forgotten the client, who must not wait for ever.
    if pending.isOpen { pending.respond(handler.response(to: .unanswered)) }
  }

  /// Sends the answer. The first call counts; later ones do nothing, as does one after the server has stopped.
  package func respond(_ response: Response) {
    pending.respond(response)
  }
}
