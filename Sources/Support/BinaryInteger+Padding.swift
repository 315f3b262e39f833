extension BinaryInteger {
  /// The digits of a number that is not negative, with zeros in front up to `width` digits.
  package func padded(to width: Int, radix: Int = 10) -> String {
    let digits = String(self, radix: radix)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }
}

extension Sequence<UInt8> {
  /// The bytes as hexadecimal digits, two for each.
  package var hexadecimal: String { map { $0.padded(to: 2, radix: 16) }.joined() }
}
