/// A decimal number as a file writes it: `-1234.50`, `5.0`, `1e3`, or with other signs between its digits.
struct DecimalText: Sendable {
  /// The signs between digits.
  struct Style: Hashable, Sendable {
    /// The sign before the fraction.
    var point: Character = "."
    /// The sign between groups of three digits; nil where there are none.
    var thousands: Character?
  }

  private let isNegative: Bool
  /// The digits without zeros at either end; the number is that integer times ten to the `exponent`.
  private let digits: Substring
  private let exponent: Int

  /// Reads a text; nil where it is not a number in this style.
  init?(_ text: some StringProtocol, _ style: Style = Style()) {
    var rest = Substring(text)
    isNegative = rest.first == "-"
    if isNegative || rest.first == "+" { rest.removeFirst() }
    func isDigit(_ character: Character) -> Bool { character.isASCII && character.isNumber }
    let whole = rest.prefix { isDigit($0) || $0 == style.thousands }
    rest = rest[whole.endIndex...]
    let groups = whole.split(omittingEmptySubsequences: false) { $0 == style.thousands }
    guard groups.count == 1 || (1...3).contains(groups[0].count) && groups.dropFirst().allSatisfy({ $0.count == 3 })
    else { return nil }
    var fraction: Substring = ""
    if rest.first == style.point {
      fraction = rest.dropFirst().prefix(while: isDigit)
      rest = rest[fraction.endIndex...]
    }
    guard !whole.isEmpty || !fraction.isEmpty else { return nil }
    var exponent = 0
    if rest.first == "e" || rest.first == "E" {
      // So many digits of an exponent are beyond every double, and cannot overflow here.
      guard rest.count <= 7, let given = Int(rest.dropFirst()) else { return nil }
      exponent = given
    } else if !rest.isEmpty {
      return nil
    }
    var digits = Substring(groups.joined() + fraction).drop { $0 == "0" }
    exponent -= fraction.count
    while digits.last == "0" {
      digits.removeLast()
      exponent += 1
    }
    self.digits = digits
    self.exponent = exponent
  }

  /// The double next to it; nil beyond the largest ones.
  var number: Double? {
    let number = Double("\(isNegative ? "-" : "")\(digits.isEmpty ? "0" : digits)e\(exponent)")
    return number?.isFinite == true ? number : nil
  }

  /// The integer that it is; nil where it is not whole, or not of 64 bits.
  var integer: Int64? {
    if digits.isEmpty { return 0 }
    // An integer of 64 bits has at most 19 digits.
    guard exponent >= 0, digits.count + exponent <= 19 else { return nil }
    return Int64((isNegative ? "-" : "") + digits + String(repeating: "0", count: exponent))
  }
}
