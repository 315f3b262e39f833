/// What came to the connections of one lane.
struct LaneTally: Hashable, Sendable {
  /// How long answers were counted.
  var seconds: Double
  /// How many there were.
  var answers = 0
  /// From the request to the whole answer.
  var latency = FanoutLatency()

  /// How many there were in a second.
  var perSecond: Double { Double(answers) / max(seconds, 1e-9) }
}
