/// For how long other nodes have not been heard: tables without lock and clock.
///
/// Times are milliseconds of a clock that only grows.
struct NodeSilences: Sendable {
  /// Since when nothing was heard of a node.
  private var begins: [UInt64: UInt64] = [:]
  private var last: UInt64?

  /// A node that has not looked for so long was asleep, or could not ask: it says nothing of the others.
  static let pause: UInt64 = 5_000

  /// Of the nodes, those that have been silent for so many milliseconds; `present` are those that were heard just now.
  /// To be called about once a second: silence counts from the first call that has it.
  mutating func gone(
    among nodes: Set<UInt64>, present: Set<UInt64>, at now: UInt64, after silence: UInt64
  ) -> Set<UInt64> {
    if let last, now - min(now, last) > Self.pause { begins = [:] }
    last = now
    let silent = nodes.subtracting(present)
    begins = begins.filter { silent.contains($0.key) }
    return silent.filter { node in
      let begin = begins[node] ?? now
      begins[node] = begin
      return now - min(now, begin) >= silence
    }
  }
}
