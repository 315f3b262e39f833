import KeyValueModel
import TestKit
import Testing

/// Makes the member of a number: values of several kinds, so that the order of kinds is tested too.
private func member(_ number: Int) throws -> Value {
  switch number % 5 {
  case 0: .integer(Int64(number))
  case 1: .string("member \(number)")
  case 2: .number(Double(number) + 0.5)
  default: .reference(try #require(Reference("Person/p\(number)")))
  }
}

@Suite struct MemberListTests {
  @Test("an ordered list is what an array is, after any changes", arguments: [6, 12, 200, 2000])
  func ordered(values: Int) throws {
    var random = SplitMix64(seed: seed &+ UInt64(values))
    var list = MemberList(isOrdered: true)
    var oracle: [Value] = []
    for step in 0..<3000 {
      let value = try member(Int.random(in: 0..<values, using: &random))
      let place = oracle.firstIndex(of: value)
      #expect(list.index(of: value) == place, "seed \(seed)")
      #expect(list.contains(value) == (place != nil), "seed \(seed)")
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        #expect(list.remove(value) == place, "seed \(seed)")
        if let place { oracle.remove(at: place) }
      case 1 where !oracle.isEmpty:
        let place = Int.random(in: 0..<oracle.count, using: &random)
        #expect(list[place] == oracle[place], "seed \(seed)")
        #expect(list.remove(at: place) == oracle.remove(at: place), "seed \(seed)")
      case 2:
        #expect(list.insert(value) == (place == nil ? oracle.count : nil), "seed \(seed)")
        if place == nil { oracle.append(value) }
      default:
        let target = Int.random(in: 0...oracle.count, using: &random)
        #expect(list.insert(value, at: target) == (place == nil), "seed \(seed)")
        if place == nil { oracle.insert(value, at: target) }
      }
      #expect(list.count == oracle.count, "seed \(seed)")
      if step.isMultiple(of: 20) {
        #expect(Array(list) == oracle, "seed \(seed)")
        #expect(list.array == oracle, "seed \(seed)")
        #expect(list.checkInvariants() == [], "seed \(seed)")
      }
    }
  }

  @Test("an unordered list is what a sorted array is, after any changes", arguments: [6, 12, 200, 2000])
  func unordered(values: Int) throws {
    var random = SplitMix64(seed: seed &+ UInt64(values))
    var list = MemberList(isOrdered: false)
    var oracle: Set<Value> = []
    for step in 0..<3000 {
      let value = try member(Int.random(in: 0..<values, using: &random))
      #expect(list.contains(value) == oracle.contains(value), "seed \(seed)")
      if Int.random(in: 0..<5, using: &random) < 3 {
        let place = list.insert(value)
        #expect((place != nil) == oracle.insert(value).inserted, "seed \(seed)")
        if let place { #expect(list[place] == value, "seed \(seed)") }
      } else {
        let place = list.index(of: value)
        #expect((place != nil) == oracle.contains(value), "seed \(seed)")
        #expect(list.remove(value) == place, "seed \(seed)")
        oracle.remove(value)
      }
      if step.isMultiple(of: 20) {
        #expect(list.checkInvariants() == [], "seed \(seed)")
        #expect(Set(list) == oracle, "seed \(seed)")
        #expect(list == MemberList(oracle, isOrdered: false), "seed \(seed)")
        for (place, member) in list.enumerated() { #expect(list.index(of: member) == place, "seed \(seed)") }
      }
    }
  }

  @Test("an unordered list has references by bytes, and other values by kind and then by value")
  func order() throws {
    let sorted: [Value] = [
      .null, .bool(false), .bool(true), .number(-1.5), .integer(-1), .integer(0), .number(-0.0), .number(0),
      .integer(1), .number(1), .number(1.5), .integer(Int64.max), .number(0x1p63), .string(""), .string("B"),
      .string("a"), .string("aaaaaaaab"),
      .string("aaaaaaaac"), .string("e\u{301}"), .string("\u{e9}"), .string("\u{1F600}"),
      .reference(try #require(Reference("A/1"))), .reference(try #require(Reference("A/10"))),
      .reference(try #require(Reference("A/2"))), .reference(try #require(Reference("B/1"))),
      .array([.integer(1), .integer(2)]), .array([.integer(10)]), .array([.integer(1)]), .array([.number(1)]),
      .array([]), .object(["a": .integer(1), "b": .integer(2)]), .object(["a": .integer(2)]),
    ]
    var random = SplitMix64(seed: seed)
    for count in [sorted.count, 5] {
      let part = Array(sorted.prefix(count))
      let list = MemberList(part.shuffled(using: &random), isOrdered: false)
      #expect(list.array.map(\.json) == part.map(\.json), "seed \(seed)")
      #expect(list.array == part, "seed \(seed)")
    }
  }

  @Test("equal members are one: objects with their members in another order; zeros of either sign are two")
  func equalMembers() {
    let first: [Value] = [
      .object(["a": .number(0), "b": .integer(2)]), .number(0), .array([.number(0)]), .array([.integer(0)]),
      .object(["a": .number(-0.0), "b": .integer(2)]), .number(-0.0), .array([.number(-0.0)]),
    ]
    let again: [Value] = [
      .object(["b": .integer(2), "a": .number(-0.0)]), .object(["b": .integer(2), "a": .number(0)]), .number(-0.0),
      .array([.number(-0.0)]),
    ]
    let many = (1...20).map { Value.integer($0) }
    for others in [[], many] {
      for isOrdered in [true, false] {
        var list = MemberList(first + others + again, isOrdered: isOrdered)
        #expect(list.count == first.count + others.count)
        for member in again {
          #expect(list.insert(member) == nil)
          #expect(list.contains(member))
        }
        for member in first { #expect(list.array.contains { $0.json == member.json }) }
        #expect(list.checkInvariants() == [])
      }
    }
  }

  @Test("of a member that comes twice the first stays")
  func duplicates() {
    for count: Int64 in [3, 20] {
      let members = (0..<count).map { Value.integer($0) }
      let list = MemberList(members + members.reversed(), isOrdered: true)
      #expect(list.array == members)
      #expect(list.checkInvariants() == [])
      #expect(MemberList(members.reversed() + members, isOrdered: false).array == members)
    }
  }

  @Test("old copies stay what they were", arguments: [true, false])
  func persistence(isOrdered: Bool) throws {
    var random = SplitMix64(seed: seed)
    var list = MemberList(isOrdered: isOrdered)
    var history: [(list: MemberList, members: [Value])] = []
    for _ in 0..<600 {
      history.append((list, list.array))
      let value = try member(Int.random(in: 0..<300, using: &random))
      if list.remove(value) != nil { continue }
      if isOrdered {
        list.insert(value, at: Int.random(in: 0...list.count, using: &random))
      } else {
        list.insert(value)
      }
    }
    for (list, members) in history {
      #expect(list.array == members, "seed \(seed)")
      #expect(list.checkInvariants() == [], "seed \(seed)")
      for (place, member) in members.enumerated() { #expect(list.index(of: member) == place, "seed \(seed)") }
    }
  }

  @Test("lists are equal by their members in their order, ordered or not, few or many, and hash alike")
  func equality() {
    for count: Int64 in [0, 3, 8, 9, 100] {
      let members = (0..<count).map { Value.integer($0) }
      let ordered = MemberList(members, isOrdered: true)
      let unordered = MemberList(members.reversed(), isOrdered: false)
      #expect(ordered == unordered)
      #expect(ordered.hashValue == unordered.hashValue)
      var built = MemberList(isOrdered: true)
      for member in members.reversed() { built.insert(member, at: 0) }
      #expect(built == ordered)
      #expect(built.hashValue == ordered.hashValue)
      built.insert(.null)
      #expect(built != ordered)
      if count > 1 { #expect(MemberList(members.reversed(), isOrdered: true) != ordered) }
    }
  }

  @Test("the form does not show: a tree that has shrunk is equal to an array that has grown")
  func forms() {
    for isOrdered in [true, false] {
      let few = MemberList((0..<6).map { .integer($0) }, isOrdered: isOrdered)
      var shrunk = MemberList((0..<50).map { .integer($0) }, isOrdered: isOrdered)
      while shrunk.count > 6 { shrunk.remove(at: 6) }
      #expect(shrunk == few)
      #expect(few == shrunk)
      #expect(shrunk.hashValue == few.hashValue)
      while !shrunk.isEmpty { #expect(shrunk.remove(.integer(Int64(6 - shrunk.count))) == 0) }
      #expect(shrunk == MemberList(isOrdered: isOrdered))
      #expect(shrunk.checkInvariants() == [])
    }
  }

  @Test("removing all leaves an empty list of the same kind")
  func removeAll() {
    for isOrdered in [true, false] {
      var list = MemberList((0..<50).map { .integer($0) }, isOrdered: isOrdered)
      list.removeAll()
      #expect(list.isEmpty)
      #expect(list.isOrdered == isOrdered)
      #expect(list.insert(.null) == 0)
    }
  }
}
