import Foundation

/// How far the clocks of a time zone are ahead of UTC.
enum TimeZoneOffset {
  /// The most bytes of a zone's name.
  private static let nameBytes = 64

  /// The seconds at `timestamp` in the zone `name`, which is one of the IANA database, or an offset such as `+11:00` or
  /// `02:00`. Throws when there is no such zone.
  static func seconds(of name: String, at timestamp: ExpressionTimestamp) throws(EvaluationError) -> Int {
    if name == "UTC" || name.isEmpty { return 0 }
    if let fixed = fixed(name) { return fixed }
    let isPlain = name.utf8.allSatisfy { byte in
      (0x61...0x7A).contains(byte) || (0x41...0x5A).contains(byte) || (0x2F...0x39).contains(byte) || byte == 0x5F
        || byte == 0x2B || byte == 0x2D
    }
    guard isPlain, name.utf8.count <= nameBytes, let zone = TimeZone(identifier: name) else {
      throw .invalid("there is no time zone '\(name.prefix(nameBytes))'")
    }
    return zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(timestamp.seconds)))
  }

  /// `+11:00`, `-02:30` or `02:00`.
  private static func fixed(_ name: String) -> Int? {
    var bytes = Array(name.utf8)
    guard let first = bytes.first else { return nil }
    let isNegative = first == 0x2D
    if isNegative || first == 0x2B { bytes.removeFirst() }
    guard bytes.count == 5, bytes[2] == 0x3A else { return nil }
    let digits = [bytes[0], bytes[1], bytes[3], bytes[4]].map { Int($0) - 0x30 }
    guard digits.allSatisfy((0...9).contains) else { return nil }
    let (hours, minutes) = (digits[0] * 10 + digits[1], digits[2] * 10 + digits[3])
    guard hours < 24, minutes < 60 else { return nil }
    return (hours * 3_600 + minutes * 60) * (isNegative ? -1 : 1)
  }
}
