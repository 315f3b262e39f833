extension ExpressionTimestamp {
  /// Reads RFC 3339, such as `2009-02-13T23:31:30.5+01:00`, with at most nine decimals. Gives nil when the text is
  /// none, when there is no such day or time, or when the instant is out of range.
  package init?(parsing text: String) {
    let bytes = Array(text.utf8)
    guard (20...35).contains(bytes.count), bytes[4] == 0x2D, bytes[7] == 0x2D, bytes[10] == 0x54 else { return nil }
    guard bytes[13] == 0x3A, bytes[16] == 0x3A else { return nil }
    guard
      let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7]), let day = Self.number(bytes[8..<10]),
      let hour = Self.number(bytes[11..<13]), let minute = Self.number(bytes[14..<16]),
      let second = Self.number(bytes[17..<19]), hour < 24, minute < 60, second < 60,
      let date = CivilDate(year: year, month: month, day: day)
    else { return nil }
    var index = 19
    var nanoseconds = 0
    if bytes[index] == 0x2E {
      let digits = bytes[(index + 1)...].prefix { (0x30...0x39).contains($0) }
      guard (1...9).contains(digits.count), let fraction = Self.number(digits) else { return nil }
      nanoseconds = (digits.count..<9).reduce(fraction) { value, _ in value * 10 }
      index += 1 + digits.count
    }
    guard let offset = Self.offset(bytes[index...]) else { return nil }
    let seconds = date.daysSinceEpoch * 86_400 + hour * 3_600 + minute * 60 + second - offset
    self.init(seconds: Int64(seconds), nanoseconds: Int32(nanoseconds))
  }

  /// The seconds that `Z`, `+01:00` or `-01:00` stand for.
  private static func offset(_ bytes: ArraySlice<UInt8>) -> Int? {
    if bytes.elementsEqual([0x5A]) { return 0 }
    let start = bytes.startIndex
    guard bytes.count == 6, bytes[start + 3] == 0x3A, bytes[start] == 0x2B || bytes[start] == 0x2D else { return nil }
    guard let hours = number(bytes[(start + 1)..<(start + 3)]), let minutes = number(bytes[(start + 4)..<(start + 6)]),
      hours < 24, minutes < 60
    else { return nil }
    return (hours * 3_600 + minutes * 60) * (bytes[start] == 0x2D ? -1 : 1)
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    var value = 0
    for digit in digits {
      guard (0x30...0x39).contains(digit) else { return nil }
      value = value * 10 + Int(digit - 0x30)
    }
    return value
  }
}

extension ExpressionTimestamp: CustomStringConvertible {
  /// RFC 3339 in UTC, with as many decimals as it takes.
  package var description: String {
    let parts = CalendarParts(self, offsetSeconds: 0)
    let date = [(parts.date.year, 4), (parts.date.month, 2), (parts.date.day, 2)]
    let time = [parts.hour, parts.minute, parts.second]
    let fraction = DecimalText.fraction(nanoseconds: Int(nanoseconds))
    return date.map { DecimalText.padded($0, to: $1) }.joined(separator: "-") + "T"
      + time.map { DecimalText.padded($0, to: 2) }.joined(separator: ":") + "\(fraction)Z"
  }
}
