import BigInt
import Foundation
import TestKit
import Testing

@testable import CEL

@Suite("Exact sums")
struct DecimalSumTests {
  /// A double as an integer of units of 10^-400, from its printed digits.
  private static func exact(_ number: Double) -> BigInt {
    let parts = number.description.lowercased().split(separator: "e")
    let mantissa = parts[0].split(separator: ".")
    let fraction = mantissa.count > 1 ? mantissa[1] : ""
    let exponent = (parts.count > 1 ? Int(parts[1]) ?? 0 : 0) - fraction.count + 400
    return (BigInt(String(mantissa[0] + fraction)) ?? 0) * BigInt(10).power(exponent)
  }

  private static func double(_ sum: BigInt) -> Double { Double("\(sum)e-400") ?? .nan }

  private static func number(_ random: inout SplitMix64) -> Double {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: Double(Int.random(in: -1_000_000...1_000_000, using: &random)) / 100
    case 1: Double.random(in: -1e6...1e6, using: &random)
    case 2: Double(Int.random(in: -1_000...1_000, using: &random))
    case 3: Double.random(in: -1...1, using: &random) * pow(10, Double(Int.random(in: -300...300, using: &random)))
    default:
      [0.1, 0.2, 0.3, 1e22, -1e22, .leastNonzeroMagnitude, 9_007_199_254_740_992, 1e-5].randomElement(using: &random)
        ?? 0
    }
  }

  @Test("0.1 added ten times is 1")
  func tenths() {
    var sum = DecimalSum()
    for _ in 0..<10 { sum.add(0.1) }
    #expect(sum.sum == 1)
    #expect(sum.integerSum == 1)
    #expect(sum.average(count: 3) == 1.0 / 3)
    #expect(sum.average(count: 0) == nil)
    for _ in 0..<3 { sum.remove(0.1) }
    #expect(sum.sum == 0.7)
    #expect(sum.integerSum == nil)
  }

  @Test("Sums are those of exact integers, whatever is added and removed")
  func oracle() {
    print("KEYWAY_TEST_SEED=\(seed)")
    var random = SplitMix64(seed: seed)
    for _ in 0..<60 {
      var sum = DecimalSum()
      var expected = BigInt(0)
      var added: [Double] = []
      for _ in 0..<Int.random(in: 1...60, using: &random) {
        if let removed = added.last, Int.random(in: 0..<4, using: &random) == 0 {
          sum.remove(removed)
          expected -= DecimalSumTests.exact(removed)
          added.removeLast()
        } else {
          let number = DecimalSumTests.number(&random)
          sum.add(number)
          expected += DecimalSumTests.exact(number)
          added.append(number)
        }
        #expect(sum.sum == DecimalSumTests.double(expected), "\(added)")
      }
      let count = Int.random(in: 1...1_000, using: &random)
      let scale = BigInt(10).power(400)
      #expect(sum.average(count: count) == DecimalSumTests.double(expected * scale / BigInt(count), digits: 800))
    }
  }

  private static func double(_ sum: BigInt, digits: Int) -> Double { Double("\(sum)e-\(digits)") ?? .nan }

  @Test("The shortest decimal of a double reads back as it")
  func shortest() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<4_000 {
      let bits = Double(bitPattern: random.next())
      for number in [bits, DecimalSumTests.number(&random)] where number.isFinite {
        let decimal = ShortestDecimal(number)
        #expect(Double("\(decimal.mantissa)e\(decimal.exponent)") == number)
        #expect(DecimalSumTests.exact(number) == BigInt(decimal.mantissa) * BigInt(10).power(decimal.exponent + 400))
      }
    }
  }

  @Test("Integers are exact, and infinities and NaN count")
  func special() {
    var sum = DecimalSum()
    sum.add(Int64.max)
    sum.add(Int64.max)
    #expect(sum.integerSum == nil)
    #expect(sum.unsignedSum == UInt64.max - 1)
    sum.remove(Int64.max)
    #expect(sum.integerSum == .max)
    sum.add(.infinity)
    #expect(sum.sum == .infinity)
    #expect(sum.integerSum == nil)
    sum.add(-.infinity)
    #expect(sum.sum.isNaN)
    sum.remove(.infinity)
    #expect(sum.sum == -.infinity)
    sum.remove(-.infinity)
    sum.add(.nan)
    #expect(sum.sum.isNaN)
    sum.remove(.nan)
    #expect(sum.integerSum == .max)
    sum.add(Double.greatestFiniteMagnitude)
    sum.add(Double.greatestFiniteMagnitude)
    #expect(sum.sum == .infinity)
    #expect(sum.average(count: 2) == .greatestFiniteMagnitude)
  }
}
