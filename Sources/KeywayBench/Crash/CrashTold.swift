import KeyValueModel
import KeywayClient

/// An event, taken apart.
struct CrashTold: Sendable {
  let event: ServerSentEvent
  let data: Value
  /// The revision that it is of.
  let revision: Int64

  init(_ event: ServerSentEvent) throws(CrashContradiction) {
    self.event = event
    guard let data = try? Value(json: event.data), let revision = data.member("revision").whole else {
      throw CrashContradiction("\(event.event) without a revision: \(event.data)")
    }
    self.data = data
    self.revision = revision
  }

  /// Whether it is the state, and not what became of it.
  var isInitial: Bool { data.member("initial") == .bool(true) }

  /// Who caused it.
  var writer: String? { data.member("writer").text }

  /// The changes of a `change`.
  var changes: [Value] { data.member("changes").elements ?? [] }
}
