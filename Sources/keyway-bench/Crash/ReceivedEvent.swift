import KeyValueModel
import KeywayClient
import TestKit

/// An event of a stream with its data taken apart.
struct ReceivedEvent: Sendable {
  /// The event as a client's list takes it.
  let event: ServerSentEvent
  /// The data as JSON.
  let data: Value
  /// The revision that the event is of.
  let revision: Int

  /// An event of a kind that has a revision; throws where it has none.
  init(_ event: WireEvent) throws(BrokenPromise) {
    self.event = ServerSentEvent(id: event.id ?? "", event: event.name ?? "message", data: event.data ?? "")
    data = event.json
    guard let revision = data["revision"].whole else { throw BrokenPromise("without a revision: \(event.text)") }
    self.revision = revision
  }

  /// Whether it is the state, and not what changed it.
  var isInitial: Bool { data["initial"] == .bool(true) }

  /// The writer that caused it.
  var writer: String? { data["writer"].text }

  /// The changes of a `change`.
  var changes: [Value] { data["changes"].items }
}
