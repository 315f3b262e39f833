import Foundation
import Support

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
    guard name.utf8.contains(UInt8(ascii: ":")) else { return nil }
    return RFC3339.offset(name) ?? RFC3339.offset("+" + name)
  }
}
