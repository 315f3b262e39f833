import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Values under numbers that grow")
struct SparseArrayTests {
  @Test("Is a dictionary, whatever comes and goes, and has no page without a value")
  func random() {
    var random = SplitMix64(seed: seed)
    var array = SparseArray<Int>()
    var oracle: [UInt64: Int] = [:]
    for number in UInt64(0)..<5_000 {
      switch Int.random(in: 0..<8, using: &random) {
      case 0..<4:
        array[number] = Int(number)
        oracle[number] = Int(number)
      case 4:
        let other = UInt64.random(in: 0...number, using: &random)
        array[other] = -1
        oracle[other] = -1
      default:
        let other = UInt64.random(in: 0...number, using: &random)
        #expect(array[other] == oracle[other])
        array[other] = nil
        oracle[other] = nil
      }
      #expect(array.pageCount == Set(oracle.keys.map { $0 / 64 }).count)
    }
    for number in UInt64(0)..<5_100 { #expect(array[number] == oracle[number]) }
    for number in oracle.keys.shuffled(using: &random) { array[number] = nil }
    #expect(array.pageCount == 0)
  }
}
