import KeyValueModel
import TestKit
import Testing

@Suite struct ValueBagTests {
  @Test("an empty bag has neither a first nor a last value")
  func empty() {
    var bag = ValueBag()
    #expect(bag.isEmpty)
    #expect(bag.first == nil)
    #expect(bag.last == nil)
    #expect(bag.remove(.integer(1)) == false)
    #expect(bag.checkInvariants() == [])
  }

  @Test("after any changes its ends are those of the sorted values", arguments: [5, 60, 1000])
  func random(values: Int) {
    var random = SplitMix64(seed: seed &+ UInt64(values))
    var bag = ValueBag()
    var oracle: [Value] = []
    for step in 0..<2000 {
      let number = Int.random(in: 0..<values, using: &random)
      let value: Value = number.isMultiple(of: 2) ? .integer(Int64(number)) : .number(Double(number) / 4)
      let place = oracle.firstIndex(of: value)
      #expect(bag.count(of: value) == oracle.count { $0 == value }, "seed \(seed)")
      if Int.random(in: 0..<5, using: &random) < 3 {
        bag.insert(value)
        oracle.append(value)
      } else {
        #expect(bag.remove(value) == (place != nil), "seed \(seed)")
        if let place { oracle.remove(at: place) }
      }
      #expect(bag.count == oracle.count)
      if step.isMultiple(of: 20) {
        let sorted = oracle.sorted(by: ValueOrder.plain.precedes)
        if let first = sorted.first, let last = sorted.last, let least = bag.first, let greatest = bag.last {
          #expect(ValueOrder.plain.ordering(of: least, to: first) == .same, "seed \(seed)")
          #expect(ValueOrder.plain.ordering(of: greatest, to: last) == .same, "seed \(seed)")
        } else {
          #expect(bag.isEmpty && oracle.isEmpty, "seed \(seed)")
        }
        #expect(bag.distinctCount == Set(oracle).count, "seed \(seed)")
        #expect(bag.checkInvariants() == [], "seed \(seed)")
      }
    }
  }

  @Test("a value that is there twice stays when it is removed once")
  func multiplicity() {
    var bag = ValueBag()
    bag.insert(.string("a"))
    bag.insert(.string("a"))
    bag.insert(.string("b"))
    #expect(bag.distinctCount == 2)
    #expect(bag.remove(.string("a")) == true)
    #expect(bag.first == .string("a"))
    #expect(bag.remove(.string("a")) == true)
    #expect(bag.first == .string("b"))
    #expect(bag.remove(.string("a")) == false)
    #expect(bag.count == 1)
  }

  @Test("values that are the same in the order but not equal are held apart")
  func equivalents() {
    var bag = ValueBag()
    bag.insert(.number(1))
    bag.insert(.integer(1))
    #expect(bag.distinctCount == 2)
    #expect(bag.first == .integer(1))
    #expect(bag.last == .number(1))
    #expect(bag.remove(.integer(1)) == true)
    #expect(bag.first == .number(1))
    #expect(bag.remove(.integer(1)) == false)
  }

  @Test("dates are ordered by the moment they name")
  func dates() {
    var bag = ValueBag(order: .dates)
    for text in ["2010-03-01T01:00:00+02:00", "2010-03-01", "2010-02-28T23:30:00Z", "2010-03-01T00:00:00Z"] {
      bag.insert(.string(text))
    }
    #expect(bag.first == .string("2010-03-01T01:00:00+02:00"))
    #expect(bag.last == .string("2010-03-01T00:00:00Z"))
    #expect(bag.distinctCount == 4)
    #expect(bag.remove(.string("2010-03-01T00:00:00Z")) == true)
    #expect(bag.last == .string("2010-03-01"))
  }

  @Test("old copies stay what they were")
  func persistence() {
    var bag = ValueBag()
    for number: Int64 in 0..<100 { bag.insert(.integer(number)) }
    let old = bag
    for number: Int64 in 0..<99 { bag.remove(.integer(number)) }
    bag.insert(.integer(99))
    #expect(old.first == .integer(0))
    #expect(old.count(of: .integer(99)) == 1)
    #expect(old.count == 100)
    #expect(bag.first == .integer(99))
    #expect(bag.count(of: .integer(99)) == 2)
  }
}
