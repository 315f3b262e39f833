import KeyValueModel
import KeywayClient

/// What `keyway watch` shows of a live query: its list, what the last event did to it, and how the stream is doing.
///
/// A value without terminal: events and notices go in, lines come out (`lines(for:)`).
struct LiveTable: Sendable {
  /// The keys that were asked for; empty for all that the rows have.
  let keys: [String]
  private(set) var list = LiveList()
  /// What the last event that changed rows did to them.
  private(set) var marks: [Reference: RowMark] = [:]
  /// What it did in all.
  private(set) var tally = ""
  /// The id from which the stream can be resumed.
  private(set) var cursor = ""
  /// How the connection is, in a few words.
  private(set) var connection = "connecting"

  init(keys: [String] = []) { self.keys = keys }

  /// Takes the next event of the stream.
  mutating func apply(_ event: ServerSentEvent) throws(LiveListError) {
    let content = try list.apply(event)
    cursor = event.id
    switch event.event {
    case "results":
      marks = [:]
      tally = ""
    case "content":
      mark(content?.changes ?? [])
    case "reset", "bye":
      connection = "\(event.event): \(Self.reason(event))"
    default:
      break
    }
    if list.isCurrent, event.event != "bye" { connection = "live" }
  }

  /// Takes what happened to the connection.
  mutating func note(_ notice: EventStreamNotice) {
    switch notice {
    case .opened: connection = "live"
    case .reconnecting(let reason, let delay): connection = "\(reason); coming back in \(Double(delay) / 1000) s"
    }
  }

  private mutating func mark(_ changes: [LiveChange]) {
    marks = [:]
    var counts: [LiveChange.Kind: Int] = [:]
    for change in changes {
      marks[change.reference] = RowMark(change)
      counts[change.kind, default: 0] += 1
    }
    let signs: [(LiveChange.Kind, String)] = [(.insert, "+"), (.delete, "−"), (.move, "↕"), (.update, "•")]
    tally = signs.compactMap { kind, sign in counts[kind].map { sign + String($0) } }.joined(separator: " ")
  }

  private static func reason(_ event: ServerSentEvent) -> String {
    (try? Value(json: event.data))?.asObject?["reason"]?.asString ?? "?"
  }
}
