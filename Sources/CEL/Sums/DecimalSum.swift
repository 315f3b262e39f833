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

  /// The sum of nothing: 0.
  package init() {}

  /// Adds a double; infinities and NaN are counted.
  package mutating func add(_ number: Double) { add(number, 1) }

  /// Takes a double away that was added.
  package mutating func remove(_ number: Double) { add(number, -1) }

  /// Adds an integer.
  package mutating func add(_ number: Int64) { add(Int128(number), exponent: 0) }

  /// Takes an integer away that was added.
  package mutating func remove(_ number: Int64) { add(-Int128(number), exponent: 0) }

  /// Adds an unsigned integer.
  package mutating func add(_ number: UInt64) { add(Int128(number), exponent: 0) }

  /// Takes an unsigned integer away that was added.
  package mutating func remove(_ number: UInt64) { add(-Int128(number), exponent: 0) }

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
}

extension DecimalSum {
  /// The value that infinities and NaN make of the sum, nil when there are none.
  private var special: Double? {
    if notNumbers > 0 || (positiveInfinities > 0 && negativeInfinities > 0) { return .nan }
    if positiveInfinities > 0 { return .infinity }
    return negativeInfinities > 0 ? -.infinity : nil
  }

  /// The sum, correctly rounded.
  package var sum: Double { special ?? exact.rounded(dividedBy: 1) }

  /// The sum when it is an integer of 64 bits, else nil.
  package var integerSum: Int64? { special == nil ? exact.integer.flatMap(Int64.init(exactly:)) : nil }

  /// The sum when it is an unsigned integer of 64 bits, else nil.
  package var unsignedSum: UInt64? { special == nil ? exact.integer.flatMap(UInt64.init(exactly:)) : nil }

  /// The sum divided by `count`, correctly rounded; nil when `count` is not above 0.
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

  /// The total in units of 10^`lowest`, nil when that takes more than 128 bits.
  private static func smallTotal(_ buckets: [Bucket], _ lowest: Int) -> Int128? {
    var total: Int128 = 0
    for bucket in buckets {
      guard let power = PowersOfTen.small(bucket.exponent - lowest) else { return nil }
      let (product, isTooLarge) = bucket.mantissa.multipliedReportingOverflow(by: power)
      let (sum, isOver) = total.addingReportingOverflow(product)
      guard !isTooLarge, !isOver else { return nil }
      total = sum
    }
    return total
  }
}
