import BigInt

/// A ratio of two large integers, the second above 0.
struct BigRatio {
  private let numerator: BigUInt
  private let denominator: BigUInt

  init(_ numerator: BigUInt, _ denominator: BigUInt) {
    (self.numerator, self.denominator) = (numerator, denominator)
  }

  /// The double that is nearest, ties to even; infinite when the ratio is too large for one.
  var rounded: Double {
    guard numerator != 0 else { return 0 }
    // A quotient of 54 or 55 bits with one bit below them for the remainder is enough to round once. Near 0 doubles
    // have fewer bits: the last one is 2^-1074.
    let bits = numerator.bitWidth - denominator.bitWidth
    let shift = max(bits - 54, -1_074 - 1)
    let top = shift < 0 ? numerator << -shift : numerator
    let bottom = shift > 0 ? denominator << shift : denominator
    let (quotient, remainder) = top.quotientAndRemainder(dividingBy: bottom)
    var mantissa = UInt64(quotient)
    let dropped = max(mantissa.bitWidth - mantissa.leadingZeroBitCount - 53, shift == -1_075 ? 1 : 0)
    let isAboveHalf = remainder != 0
    if dropped > 0 {
      let half = UInt64(1) << (dropped - 1)
      let rest = mantissa & ((UInt64(1) << dropped) - 1)
      mantissa >>= dropped
      if rest > half || (rest == half && (isAboveHalf || mantissa & 1 == 1)) { mantissa += 1 }
    }
    // Both factors are exact, and the product is: the mantissa has been cut to the bits that are there.
    return BigRatio.scaled(Double(mantissa), by: shift + dropped)
  }

  private static func scaled(_ number: Double, by exponent: Int) -> Double {
    guard exponent < 1_024 else { return .infinity }
    return Double(sign: .plus, exponent: exponent, significand: number)
  }
}
