import KeyValueModel
import TestKit

/// What came of the requests of a client.
struct NeighbourTally: Hashable, Sendable {
  /// Answered with success.
  var answered = 0
  /// Refused for a limit: 429 or 503.
  var refused = 0
  /// Answered with another status.
  var other = 0
  /// Not answered: the connection was not taken, was closed, or nothing came in time.
  var cut = 0

  /// Counts a status; nil for no answer.
  mutating func count(_ status: Int?) {
    switch status {
    case nil: cut += 1
    case .some(200..<400): answered += 1
    case 429, 503: refused += 1
    default: other += 1
    }
  }

  /// How many were not answered with success.
  var failed: Int { refused + other + cut }

  /// None yet.
  init() {}

  /// What `json` gave. Throws where the text is none of it.
  init(json text: String) throws {
    let json = try Value(json: text)
    answered = json["answered"].whole ?? 0
    refused = json["refused"].whole ?? 0
    other = json["other"].whole ?? 0
    cut = json["cut"].whole ?? 0
  }

  /// All of them as JSON.
  var json: Value {
    .object([
      "answered": .count(answered), "refused": .count(refused), "other": .count(other), "cut": .count(cut),
    ])
  }
}
