/// The dates of RFC 3339 §5.6: `full-date` (`2010-03-01`) and `date-time` (`2010-03-01T09:30:00Z`, with a fraction or
/// an offset where wanted).
enum RFC3339 {
  /// Whether `text` is a `full-date` or a `date-time` that exists in the calendar.
  static func isDate(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count >= 10, isFullDate(bytes[..<10]) else { return false }
    if bytes.count == 10 { return true }
    guard bytes[10] | 0x20 == UInt8(ascii: "t") else { return false }
    return isFullTime(bytes[11...])
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    guard digits.allSatisfy(\.isASCIIDigit) else { return nil }
    return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
  }

  private static func isFullDate(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
      let year = number(bytes[0..<4]), let month = number(bytes[5..<7]), let day = number(bytes[8..<10])
    else { return false }
    guard (1...12).contains(month) else { return false }
    let isLeapYear = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
    let days = [31, isLeapYear ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return (1...days[month - 1]).contains(day)
  }

  private static func isFullTime(_ bytes: ArraySlice<UInt8>) -> Bool {
    let start = bytes.startIndex
    guard bytes.count >= 9, bytes[start + 2] == UInt8(ascii: ":"), bytes[start + 5] == UInt8(ascii: ":"),
      let hour = number(bytes[start..<start + 2]), let minute = number(bytes[start + 3..<start + 5]),
      let second = number(bytes[start + 6..<start + 8])
    else { return false }
    // 60 is the leap second that §5.7 allows.
    guard hour < 24, minute < 60, second <= 60 else { return false }
    var rest = bytes[(start + 8)...]
    if rest.first == UInt8(ascii: ".") {
      let fraction = rest.dropFirst().prefix(while: \.isASCIIDigit)
      guard !fraction.isEmpty else { return false }
      rest = rest[fraction.endIndex...]
    }
    return isOffset(rest)
  }

  private static func isOffset(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let sign = bytes.first else { return false }
    if bytes.count == 1 { return sign | 0x20 == UInt8(ascii: "z") }
    let start = bytes.startIndex
    guard bytes.count == 6, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"),
      bytes[start + 3] == UInt8(ascii: ":"), let hour = number(bytes[start + 1..<start + 3]),
      let minute = number(bytes[start + 4..<start + 6])
    else { return false }
    return hour < 24 && minute < 60
  }
}
