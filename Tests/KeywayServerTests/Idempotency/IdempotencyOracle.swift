import KeywayServer

/// The simplest implementation of the memory of idempotency keys: one list that is searched each time.
struct IdempotencyOracle {
  struct Record {
    let key: String
    let client: Int
    let request: String
    var bytes: Int
    /// The response and its expiry; nil while the request is in progress.
    var answer: (text: String, expiry: UInt64)?
  }

  let limits: IdempotencyMemory.Limits
  var records: [Record] = []

  var bytes: Int { records.reduce(0) { $0 + $1.bytes } }

  var underWay: [String] { records.filter { $0.answer == nil }.map(\.key) }

  func bytes(of client: Int) -> Int { records.reduce(0) { $0 + ($1.client == client ? $1.bytes : 0) } }

  private func cost(_ key: String) -> Int { IdempotencyMemory.overheadBytes + key.utf8.count }

  /// Returns true if the others leave a client so much: its part of what they leave unreserved, or an eighth of all
  /// they leave.
  private static func isLeft(_ wanted: Int, beside others: Int, of limit: Int, share: Int) -> Bool {
    let unreserved = Double(limit - min(limit / 8, limit - share))
    let part = min(Double(share), unreserved) / unreserved
    return wanted == 1 || wanted <= (limit - others) / 8
      || Double(wanted) <= (part * max(0, unreserved - Double(others)) - 1e-6).rounded(.up)
  }

  mutating func begin(_ key: String, _ request: String, from client: Int, at now: UInt64) -> String {
    records.removeAll { $0.answer.map { $0.expiry <= now } ?? false }
    if let record = records.first(where: { $0.key == key }) {
      if record.request != request { return "reused" }
      return record.answer.map { "answered \($0.text)" } ?? "under way"
    }
    let cost = cost(key) + IdempotencyMemory.headBytes + request.utf8.count
    let own = records.filter { $0.client == client }
    let (keyShare, byteShare) = (limits.keys * limits.clientPercent / 100, limits.bytes * limits.clientPercent / 100)
    if cost > byteShare { return "too large" }
    if own.count + 1 > max(1, keyShare) || bytes(of: client) + cost > byteShare { return "share full" }
    if records.count + 1 > limits.keys || bytes + cost > limits.bytes { return "full" }
    guard
      Self.isLeft(own.count + 1, beside: records.count - own.count, of: limits.keys, share: max(1, keyShare)),
      Self.isLeft(bytes(of: client) + cost, beside: bytes - bytes(of: client), of: limits.bytes, share: byteShare)
    else { return "full" }
    records.append(Record(key: key, client: client, request: request, bytes: cost))
    return "first"
  }

  mutating func keep(_ text: String, for key: String, at now: UInt64) {
    records.removeAll { $0.answer.map { $0.expiry <= now } ?? false }
    guard let index = records.firstIndex(where: { $0.key == key }) else { return }
    let record = records[index]
    var text = text
    let growth = cost(key) + text.utf8.count - record.bytes
    let byteShare = limits.bytes * limits.clientPercent / 100
    let own = bytes(of: record.client)
    let isLeft =
      bytes + growth <= limits.bytes && own + growth <= byteShare
      && Self.isLeft(own + growth, beside: bytes - own, of: limits.bytes, share: byteShare)
    if growth > 0, !isLeft { text = "" }
    records[index].bytes = cost(key) + text.utf8.count
    records[index].answer = (text, now + limits.seconds)
  }

  mutating func abandon(_ key: String) {
    records.removeAll { $0.key == key }
  }
}
