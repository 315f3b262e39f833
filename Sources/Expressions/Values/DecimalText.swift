/// Pieces of numbers as text.
enum DecimalText {
  /// A fraction of a second with its point and without zeros at the end, empty when it is 0.
  static func fraction(nanoseconds: Int) -> String {
    guard nanoseconds != 0 else { return "" }
    var digits = padded(nanoseconds, to: 9)
    while digits.hasSuffix("0") { digits.removeLast() }
    return "." + digits
  }

  /// A number that is not negative, with zeros in front up to `width` digits.
  static func padded(_ number: Int, to width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }
}
