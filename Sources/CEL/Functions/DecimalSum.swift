import BigInt

/// A sum of doubles and integers that is exact and does not depend on their order: each double counts as the shortest
/// decimal that reads back as it, so that 0.1 added ten times is 1. What was added can be removed.
package struct DecimalSum: Sendable {
  /// The sum of the mantissas that have one exponent of ten. Adding 2^63 numbers of 17 digits does not overflow it.
  private struct Bucket: Sendable {
    let exponent: Int
    var mantissa: Int128
  }

  private var buckets: [Bucket] = []
  private var positiveInfinities = 0
  private var negativeInfinities = 0
  private var notNumbers = 0

  /// Creates an empty sum, which is 0.
  package init() {}

  /// Adds a double; infinities and NaN are counted.
  package mutating func add(_ number: Double) { add(number, 1) }

  /// Removes a double that was added.
  package mutating func remove(_ number: Double) { add(number, -1) }

  /// Adds an integer.
  package mutating func add(_ number: Int64) { add(Int128(number), exponent: 0) }

  /// Removes an integer that was added.
  package mutating func remove(_ number: Int64) { add(-Int128(number), exponent: 0) }

  /// Adds an unsigned integer.
  package mutating func add(_ number: UInt64) { add(Int128(number), exponent: 0) }

  private mutating func add(_ number: Double, _ times: Int) {
    guard number.isFinite else {
      if number.isNaN {
        notNumbers += times
      } else if number > 0 {
        positiveInfinities += times
      } else {
        negativeInfinities += times
      }
      return
    }
    let decimal = ShortestDecimal(number)
    add(Int128(decimal.mantissa) * Int128(times), exponent: decimal.exponent)
  }

  private mutating func add(_ mantissa: Int128, exponent: Int) {
    for index in buckets.indices where buckets[index].exponent == exponent {
      buckets[index].mantissa += mantissa
      return
    }
    guard mantissa != 0 else { return }
    buckets.append(Bucket(exponent: exponent, mantissa: mantissa))
  }

  // MARK: Results

  /// The value that infinities and NaN give the sum; nil if there are none.
  private var special: Double? {
    if notNumbers > 0 || (positiveInfinities > 0 && negativeInfinities > 0) { return .nan }
    if positiveInfinities > 0 { return .infinity }
    return negativeInfinities > 0 ? -.infinity : nil
  }

  /// The sum, correctly rounded.
  package var sum: Double { special ?? exact.rounded(dividedBy: 1) }

  /// The sum, if it is an integer of 64 bits; otherwise nil.
  package var integerSum: Int64? { special == nil ? exact.integer.flatMap(Int64.init(exactly:)) : nil }

  /// The sum, if it is an unsigned integer of 64 bits; otherwise nil.
  package var unsignedSum: UInt64? { special == nil ? exact.integer.flatMap(UInt64.init(exactly:)) : nil }

  /// Returns the sum divided by `count`, correctly rounded; nil if `count` is not above 0.
  package func average(count: Int) -> Double? {
    guard count > 0 else { return nil }
    return special ?? exact.rounded(dividedBy: count)
  }

  /// All buckets as one decimal.
  private var exact: ExactDecimal {
    let used = buckets.filter { $0.mantissa != 0 }
    guard let lowest = used.map(\.exponent).min() else { return ExactDecimal(mantissa: 0, exponent: 0) }
    if let small = DecimalSum.smallTotal(used, lowest) { return ExactDecimal(mantissa: small, exponent: lowest) }
    let total = used.reduce(BigInt(0)) { $0 + BigInt($1.mantissa) * BigInt(10).power($1.exponent - lowest) }
    return ExactDecimal(big: total, exponent: lowest)
  }

  /// Returns the total in units of 10^`lowest`; nil if that takes more than 128 bits.
  private static func smallTotal(_ buckets: [Bucket], _ lowest: Int) -> Int128? {
    var total: Int128 = 0
    for bucket in buckets {
      guard let power = PowersOfTen.small(bucket.exponent - lowest) else { return nil }
      let (product, isTooLarge) = bucket.mantissa.multipliedReportingOverflow(by: power)
      let (sum, overflows) = total.addingReportingOverflow(product)
      guard !isTooLarge, !overflows else { return nil }
      total = sum
    }
    return total
  }

  /// Returns the value of `sum` over numbers of these kinds: `emptyValue` if there are none, an int or a uint if all
  /// are, otherwise a double. Throws `outOfRange` if a sum of integers is out of range.
  package func value(
    _ kinds: NumberKinds, emptyValue: ExpressionValue
  ) throws(EvaluationError) -> ExpressionValue {
    switch (kinds.ints > 0, kinds.uints > 0, kinds.doubles > 0) {
    case (false, false, false): return emptyValue
    case (true, false, false):
      guard let sum = integerSum else { throw .overflow("int") }
      return .int(sum)
    case (false, true, false):
      guard let sum = unsignedSum else { throw .overflow("uint") }
      return .uint(sum)
    default: return .double(sum)
    }
  }
}

/// The numbers of values of each type that have been added to a sum: they decide the type of the sum.
package struct NumberKinds: Sendable, Equatable {
  /// The number of values of type int.
  package var ints = 0
  /// The number of values of type uint.
  package var uints = 0
  /// The number of values of type double.
  package var doubles = 0

  /// Creates counts of 0.
  package init() {}
}

/// An integer times a power of ten.
private struct ExactDecimal {
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

  /// The value, if it is an integer of at most 127 bits; otherwise nil.
  var integer: Int128? {
    if case .small(let mantissa) = mantissa, exponent <= 0, let power = PowersOfTen.small(-exponent) {
      return mantissa % power == 0 ? mantissa / power : nil
    }
    let power = BigInt(10).power(abs(exponent))
    if exponent >= 0 { return Int128(exactly: bigMantissa * power) }
    let (quotient, remainder) = bigMantissa.quotientAndRemainder(dividingBy: power)
    return remainder == 0 ? Int128(exactly: quotient) : nil
  }

  /// Returns the value divided by `divisor`, which must be above 0, rounded once.
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

/// A ratio of two large integers, the second above 0.
private struct BigRatio {
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
    // Both factors are exact, and so is the product: the mantissa has been cut to the available bits.
    return BigRatio.scaled(Double(mantissa), by: shift + dropped)
  }

  private static func scaled(_ number: Double, by exponent: Int) -> Double {
    guard exponent < 1_024 else { return .infinity }
    return Double(sign: .plus, exponent: exponent, significand: number)
  }
}

/// Powers of ten that are exact.
private enum PowersOfTen {
  private static let integers: [Int128] = (0..<38).map { exponent in
    (0..<exponent).reduce(Int128(1)) { power, _ in power * 10 }
  }

  /// Returns 10^`exponent` as an integer of 128 bits; nil if it does not fit.
  static func small(_ exponent: Int) -> Int128? {
    integers.indices.contains(exponent) ? integers[exponent] : nil
  }
}
