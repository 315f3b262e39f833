import KeyValueModel
import TestKit
import Testing

@Suite struct ValueOrderTests {
  /// Returns values in ascending groups; the values of one group are equal in the order.
  private func groups() throws -> [[Value]] {
    let reference = try #require(Reference("A/1"))
    return [
      [.null],
      [.bool(false)], [.bool(true)],
      [.number(-Double.greatestFiniteMagnitude)], [.number(-0x1p64)],
      [.integer(.min), .number(-0x1p63)], [.integer(.min + 1)], [.number(-0x1p62), .integer(-0x4000_0000_0000_0000)],
      [.number(-1.5)], [.integer(-1), .number(-1)], [.number(-0.5)],
      [.integer(0), .number(0), .number(-0.0)], [.number(.leastNonzeroMagnitude)], [.number(0.5)],
      [.integer(1), .number(1)],
      // A double cannot represent the odd number.
      [.integer(0x20_0000_0000_0000), .number(0x1p53)], [.integer(0x20_0000_0000_0001)],
      [.integer(0x20_0000_0000_0002), .number(0x1p53 + 2)],
      [.integer(.max)], [.number(0x1p63)], [.number(1e300)],
      [.string("")], [.string("A")], [.string("A/1"), .reference(reference)], [.string("A/10")], [.string("B")],
      [.string("a")], [.string("aaaaaaaa")], [.string("aaaaaaaaa")], [.string("aaaaaaab")], [.string("e\u{301}")],
      [.string("\u{e9}")], [.string("\u{FFFD}")], [.string("\u{1F600}")],
      [.array([])], [.array([.null])], [.array([.integer(2)]), .array([.number(2)])],
      [.array([.integer(2), .integer(1)])], [.array([.integer(10)])], [.array([.string("a")])],
      [.object([:])],
      [.object(["a": .integer(1), "b": .integer(2)]), .object(["b": .integer(2), "a": .integer(1)])],
      [.object(["a": .integer(2)])],
    ]
  }

  @Test("it puts kinds one after the other and compares numbers exactly, in every pair")
  func pairs() throws {
    // The text of an empty object, {}, comes after those with members: a quotation mark is less than a brace.
    var groups = try groups()
    let empty = groups.remove(at: groups.count - 3)
    groups.append(empty)
    for (leftIndex, left) in groups.enumerated() {
      for (rightIndex, right) in groups.enumerated() {
        let expected: Ordering =
          leftIndex < rightIndex ? .ascending : leftIndex == rightIndex ? .same : .descending
        for left in left {
          for right in right {
            let ordering = ValueOrder.plain.ordering(of: left, to: right)
            #expect(ordering == expected, "\(left) to \(right)")
            #expect(ValueOrder.plain.precedes(left, right) == (expected == .ascending), "\(left) to \(right)")
          }
        }
      }
    }
  }

  @Test("members of a to-many are compared as an array of them")
  func members() {
    let list = Value.members(MemberList([.integer(1), .integer(2)], isOrdered: true))
    #expect(ValueOrder.plain.ordering(of: list, to: .array([.integer(1), .integer(2)])) == .same)
    #expect(ValueOrder.plain.ordering(of: list, to: .array([.integer(1)])) == .descending)
  }

  @Test("in the order of dates, strings that are dates come by their moment and before other strings")
  func dates() {
    let groups: [[String]] = [
      ["1969-12-31T23:59:59.5Z"],
      ["2010-03-01", "2010-03-01T00:00:00Z", "2010-03-01t02:00:00+02:00", "2010-02-28T23:30:00.000-00:30"],
      ["2010-03-01T00:00:00.000000001Z"], ["2010-03-01T00:00:00.1Z", "2010-03-01T00:00:00.10Z"], ["2010-03-02"],
      [""], ["2010-02-30"], ["tomorrow"],
    ]
    for (leftIndex, left) in groups.enumerated() {
      for (rightIndex, right) in groups.enumerated() {
        let expected: Ordering =
          leftIndex < rightIndex ? .ascending : leftIndex == rightIndex ? .same : .descending
        for left in left {
          for right in right {
            #expect(ValueOrder.dates.ordering(of: .string(left), to: .string(right)) == expected, "\(left) \(right)")
          }
        }
      }
    }
    #expect(ValueOrder.dates.ordering(of: .string("2010-03-01"), to: .integer(7)) == .descending)
    #expect(ValueOrder.dates.ordering(of: .null, to: .string("2010-03-01")) == .ascending)
    #expect(ValueOrder.dates.ordering(of: .string("2010-03-01"), to: .array([])) == .ascending)
  }

  @Test("bytes are compared the same whatever the length of the shared part")
  func bytes() {
    var random = SplitMix64(seed: seed)
    let letters = ["a", "b", "\u{e9}", "\u{1F600}"]
    let texts = (0..<150).map { _ in
      (0..<Int.random(in: 0..<20, using: &random)).map { _ in
        letters[Int.random(in: 0..<20, using: &random) == 0 ? Int.random(in: 1..<4, using: &random) : 0]
      }.joined()
    }
    for left in texts {
      for right in texts {
        let isLess = left.utf8.lexicographicallyPrecedes(right.utf8)
        #expect(ValueOrder.plain.precedes(.string(left), .string(right)) == isLess, "seed \(seed)")
      }
    }
  }
}
