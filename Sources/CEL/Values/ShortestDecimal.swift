/// A decimal number of at most 64 bits of digits, `mantissa` × 10^`exponent`, without trailing zeros: the shortest one
/// that reads back as a double, or the value of a text.
package struct ShortestDecimal: Equatable {
  let mantissa: Int64
  let exponent: Int

  private static let powers: [Double] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]

  /// Creates the decimal of `number`, which must be finite.
  package init(_ number: Double) {
    // A decimal of at most 15 digits that reads back as the double is the only one, hence the shortest: the division of
    // two exact doubles is rounded once, as reading is.
    for (places, power) in ShortestDecimal.powers.enumerated() {
      let scaled = (number * power).rounded()
      guard scaled.magnitude < 1e15 else { break }
      if scaled / power == number {
        self.init(stripping: Int64(scaled), exponent: -places)
        return
      }
    }
    // The standard library writes at most 17 digits.
    self = ShortestDecimal(parsing: number.description) ?? ShortestDecimal(stripping: 0, exponent: 0)
  }

  private init(stripping mantissa: Int64, exponent: Int) {
    var (mantissa, exponent) = (mantissa, mantissa == 0 ? 0 : exponent)
    while mantissa != 0, mantissa % 10 == 0 {
      mantissa /= 10
      exponent += 1
    }
    (self.mantissa, self.exponent) = (mantissa, exponent)
  }

  /// Parses digits with a point and an exponent, either of which may be missing, in the form of JSON or of the standard
  /// library. Exact; nil if the digits take more than 64 bits, or the exponent is beyond any double's.
  package init?(parsing text: String) {
    let parts = text.utf8.split(maxSplits: 1) { $0 | 0x20 == 0x65 }
    var mantissa: Int64 = 0
    var exponent = 0
    var zeros = 0
    var seesPoint = false
    for byte in parts[0] where byte != 0x2D {
      if byte == 0x2E {
        seesPoint = true
        continue
      }
      if seesPoint { exponent -= 1 }
      // Zeros count only if another digit follows.
      zeros += 1
      guard byte != 0x30 else { continue }
      for _ in 0..<(mantissa == 0 ? 1 : zeros) {
        let (product, isTooLarge) = mantissa.multipliedReportingOverflow(by: 10)
        if isTooLarge { return nil }
        mantissa = product
      }
      // Accumulated as a negative number, of which there is one more.
      let (sum, isTooLarge) = mantissa.subtractingReportingOverflow(Int64(byte - 0x30))
      if isTooLarge { return nil }
      (mantissa, zeros) = (sum, 0)
    }
    if parts.count > 1, mantissa != 0 {
      guard let written = Int(String(Substring(parts[1]))), written.magnitude < 1_000_000 else { return nil }
      exponent += written
    }
    let isNegative = text.utf8.first == 0x2D
    guard isNegative || mantissa != .min else { return nil }
    self.init(stripping: isNegative ? mantissa : -mantissa, exponent: exponent + zeros)
  }

  /// The number, if it is an integer of 64 bits; otherwise nil.
  package var integer: Int64? {
    guard exponent >= 0 else { return nil }
    guard exponent < 19 else { return mantissa == 0 ? 0 : nil }
    var integer = mantissa
    for _ in 0..<exponent {
      let (product, isTooLarge) = integer.multipliedReportingOverflow(by: 10)
      if isTooLarge { return nil }
      integer = product
    }
    return integer
  }
}
