import KeywayAPI

/// The memory of idempotency keys written in the simplest way: one list, gone through each time.
struct IdempotencyOracle {
  struct Record {
    let key: String
    let request: String
    var bytes: Int
    /// Nil while the request is under way.
    var answer: (text: String, expiry: UInt64)?
  }

  let limits: IdempotencyMemory.Limits
  /// Those that are answered stand in the order of their answers.
  var records: [Record] = []

  var bytes: Int { records.reduce(0) { $0 + $1.bytes } }

  var underWay: [String] { records.filter { $0.answer == nil }.map(\.key) }

  mutating func begin(_ key: String, _ request: String, cost: Int, at now: UInt64) -> String {
    records.removeAll { $0.answer.map { $0.expiry <= now } ?? false }
    if let record = records.first(where: { $0.key == key }) {
      if record.request != request { return "reused" }
      return record.answer.map { "answered \($0.text)" } ?? "under way"
    }
    if cost > limits.bytes { return "too large" }
    let underWay = records.filter { $0.answer == nil }
    if underWay.count + 1 > limits.keys || underWay.reduce(cost, { $0 + $1.bytes }) > limits.bytes { return "full" }
    records.append(Record(key: key, request: request, bytes: cost))
    makeRoom(sparing: key)
    return "first"
  }

  mutating func keep(_ text: String, for key: String, cost: Int, at now: UInt64) {
    records.removeAll { $0.answer.map { $0.expiry <= now } ?? false }
    guard let index = records.firstIndex(where: { $0.key == key }) else { return }
    var record = records.remove(at: index)
    record.bytes += cost
    record.answer = (text, now + limits.seconds)
    records.append(record)
    makeRoom(sparing: nil)
  }

  mutating func abandon(_ key: String) {
    records.removeAll { $0.key == key }
  }

  private mutating func makeRoom(sparing key: String?) {
    while records.count > limits.keys || bytes > limits.bytes {
      guard let oldest = records.firstIndex(where: { $0.answer != nil && $0.key != key }) else { return }
      records.remove(at: oldest)
    }
  }
}
