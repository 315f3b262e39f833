/// The right to answer one request with a stream that the hub has opened.
///
/// It has to be used once: as an `HandlerResponse.stream`, or given back with `StreamHub.abandon(_:)`.
package final class EventStream: Sendable {
  /// The name under which events are posted for this stream alone, and its end is told.
  package let id: StreamID
  let worker: HubWorker

  init(id: StreamID, worker: HubWorker) {
    self.id = id
    self.worker = worker
  }
}
