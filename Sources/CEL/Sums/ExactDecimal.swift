import BigInt

/// An integer times a power of ten.
struct ExactDecimal {
  private enum Mantissa {
    case small(Int128)
    case big(BigInt)
  }

  private let mantissa: Mantissa
  private let exponent: Int

  init(mantissa: Int128, exponent: Int) {
    (self.mantissa, self.exponent) = (.small(mantissa), exponent)
  }

  init(big mantissa: BigInt, exponent: Int) {
    (self.mantissa, self.exponent) = (.big(mantissa), exponent)
  }

  private var bigMantissa: BigInt {
    switch mantissa {
    case .small(let mantissa): BigInt(mantissa)
    case .big(let mantissa): mantissa
    }
  }

  /// The value when it is an integer of at most 127 bits.
  var integer: Int128? {
    if case .small(let mantissa) = mantissa, exponent <= 0, let power = PowersOfTen.small(-exponent) {
      return mantissa % power == 0 ? mantissa / power : nil
    }
    let power = BigInt(10).power(abs(exponent))
    if exponent >= 0 { return Int128(exactly: bigMantissa * power) }
    let (quotient, remainder) = bigMantissa.quotientAndRemainder(dividingBy: power)
    return remainder == 0 ? Int128(exactly: quotient) : nil
  }

  /// The value divided by `divisor`, which must be above 0, rounded once.
  func rounded(dividedBy divisor: Int) -> Double {
    // Two integers below 2^53 are exact doubles, and the division of doubles is rounded once.
    if case .small(let mantissa) = mantissa {
      let power = PowersOfTen.small(abs(exponent)) ?? .max
      let (numerator, isNumeratorLarge) = mantissa.multipliedReportingOverflow(by: exponent > 0 ? power : 1)
      let (denominator, isDenominatorLarge) = Int128(divisor).multipliedReportingOverflow(by: exponent < 0 ? power : 1)
      let limit: Int128 = 1 << 53
      if !isNumeratorLarge, !isDenominatorLarge, numerator.magnitude <= limit, denominator <= limit {
        // Both fit in 64 bits, from which the conversion is one instruction.
        return Double(Int64(truncatingIfNeeded: numerator)) / Double(Int64(truncatingIfNeeded: denominator))
      }
    }
    let power = BigInt(10).power(abs(exponent))
    let numerator = exponent > 0 ? bigMantissa * power : bigMantissa
    let denominator = exponent < 0 ? BigInt(divisor) * power : BigInt(divisor)
    let magnitude = BigRatio(numerator.magnitude, denominator.magnitude).rounded
    return numerator.sign == .minus ? -magnitude : magnitude
  }
}
