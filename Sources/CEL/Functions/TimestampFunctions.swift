import Support

/// Parts of instants, perhaps in a time zone, and of spans of time.
enum TimestampFunctions {
  static let all = [
    part("getFullYear") { parts, _ in parts.date.year },
    part("getMonth") { parts, _ in parts.date.month - 1 },
    part("getDate") { parts, _ in parts.date.day },
    part("getDayOfMonth") { parts, _ in parts.date.day - 1 },
    part("getDayOfWeek") { parts, _ in parts.dayOfWeek },
    part("getDayOfYear") { parts, _ in parts.date.dayOfYear },
    part("getHours", span: { $0 / 3_600_000_000_000 }) { parts, _ in parts.hour },
    part("getMinutes", span: { $0 / 60_000_000_000 }) { parts, _ in parts.minute },
    part("getSeconds", span: { $0 / 1_000_000_000 }) { parts, _ in parts.second },
    part("getMilliseconds", span: { $0 / 1_000_000 % 1_000 }) { _, nanoseconds in nanoseconds / 1_000_000 },
  ]

  /// What a time zone costs to find.
  private static let zoneCost = 20

  /// A function of an instant, and of a span of time when `span` gives its part of nanoseconds.
  private static func part(
    _ name: String, span: (@Sendable (Int64) -> Int64)? = nil,
    _ part: @escaping @Sendable (CivilTime, Int) -> Int
  ) -> FunctionDefinition {
    let overloads: [([ExpressionType], ExpressionType)] = [([.timestamp], .int), ([.timestamp, .string], .int)]
    return FunctionDefinition(
      name, overloads + (span == nil ? [] : [([.duration], .int)])
    ) { (arguments, budget) throws(EvaluationError) in
      if case .duration(let duration) = arguments[0], let span, arguments.count == 1 {
        return .int(span(duration.nanoseconds))
      }
      guard case .timestamp(let timestamp) = arguments[0] else { throw arguments.mismatch }
      var offset = 0
      if arguments.count > 1 {
        try budget.spend(zoneCost)
        offset = try TimeZoneOffset.seconds(of: arguments.string(1), at: timestamp)
      }
      let parts = CivilTime(secondsSinceEpoch: Int(timestamp.seconds) + offset)
      return .int(Int64(part(parts, Int(timestamp.nanoseconds))))
    }
  }
}
