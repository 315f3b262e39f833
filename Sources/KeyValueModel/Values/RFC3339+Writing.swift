import Expressions

extension RFC3339 {
  /// The `date-time` in UTC, to the millisecond, of so many milliseconds since 1970-01-01T00:00:00Z. Times before the year
  /// 0 and after 9999, which have no such text, are given as the first and the last that has one.
  static func dateTime(milliseconds: Int64) -> String {
    let time = Int(min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999))
    let millisecondOfDay = (time % 86_400_000 + 86_400_000) % 86_400_000
    let date = CivilDate(daysSinceEpoch: (time - millisecondOfDay) / 86_400_000)
    let second = millisecondOfDay / 1_000
    let day = "\(digits(date.year, 4))-\(digits(date.month, 2))-\(digits(date.day, 2))"
    let clock = "\(digits(second / 3_600, 2)):\(digits(second / 60 % 60, 2)):\(digits(second % 60, 2))"
    return "\(day)T\(clock).\(digits(millisecondOfDay % 1_000, 3))Z"
  }

  private static func digits(_ number: Int, _ width: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
  }
}
