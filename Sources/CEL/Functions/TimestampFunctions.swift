import Foundation
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

  /// The cost of finding a time zone.
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

/// The offset of a time zone from UTC.
private enum TimeZoneOffset {
  /// The maximum number of bytes in a zone's name.
  private static let nameBytes = 64

  /// Returns the offset in seconds at `timestamp` in the zone `name`, which is one of the IANA database, or an offset
  /// such as `+11:00` or `02:00`. Throws if there is no such zone.
  static func seconds(of name: String, at timestamp: ExpressionTimestamp) throws(EvaluationError) -> Int {
    if name == "UTC" || name.isEmpty { return 0 }
    if let fixed = fixed(name) { return fixed }
    let isPlain = name.utf8.allSatisfy { byte in
      (0x61...0x7A).contains(byte) || (0x41...0x5A).contains(byte) || (0x2F...0x39).contains(byte) || byte == 0x5F
        || byte == 0x2B || byte == 0x2D
    }
    guard isPlain, name.utf8.count <= nameBytes, let zone = TimeZone(identifier: name) else {
      throw .invalid("'\(name.prefix(nameBytes))' is not a known time zone")
    }
    return zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(timestamp.seconds)))
  }

  /// `+11:00`, `-02:30` or `02:00`.
  private static func fixed(_ name: String) -> Int? {
    guard name.utf8.contains(UInt8(ascii: ":")) else { return nil }
    return RFC3339.offset(name) ?? RFC3339.offset("+" + name)
  }
}
