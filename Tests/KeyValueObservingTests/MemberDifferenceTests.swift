import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("The difference between two moments of a collection")
struct MemberDifferenceTests {
  /// Returns the difference, found by comparing every member: kind, indexes, removed and inserted members.
  static func expected(_ then: [Value], _ now: [Value], isOrdered: Bool) -> String? {
    let (removed, inserted) = (then.filter { !now.contains($0) }, now.filter { !then.contains($0) })
    guard isOrdered else {
      guard removed.count + inserted.count < now.count, then != now else { return nil }
      let kind = removed.isEmpty ? "insertion" : inserted.isEmpty ? "removal" : "replacement"
      return "\(kind) nil \(removed.map(\.json)) \(inserted.map(\.json))"
    }
    if then.count == now.count {
      let places = then.indices.filter { then[$0] != now[$0] }
      guard !places.isEmpty, places.count * 2 < now.count else { return nil }
      return "replacement \(places) \(places.map { then[$0].json }) \(places.map { now[$0].json })"
    }
    if removed.isEmpty, now.filter(then.contains) == then, inserted.count < now.count {
      return "insertion \(inserted.compactMap(now.firstIndex)) [] \(inserted.map(\.json))"
    }
    if inserted.isEmpty, then.filter(now.contains) == now, removed.count < now.count {
      return "removal \(removed.compactMap(then.firstIndex)) \(removed.map(\.json)) []"
    }
    return nil
  }

  static func text(_ difference: MemberDifference?) -> String? {
    difference.map {
      let places = $0.indexes.map { "\($0)" } ?? "nil"
      return "\($0.kind) \(places) \($0.removed.map(\.json)) \($0.inserted.map(\.json))"
    }
  }

  @Test("It is what looking at every member finds, for short lists and long", arguments: [true, false])
  func random(isOrdered: Bool) {
    var random = SplitMix64(seed: seed)
    for round in 0..<3_000 {
      let size = Int.random(in: 0..<(round.isMultiple(of: 10) ? 200 : 12), using: &random)
      let then = MemberList((0..<size).map { .integer(Int64($0)) }.shuffled(using: &random), isOrdered: isOrdered)
      var now = then
      // Some members that are touched but do not change.
      var touched = Set(then.filter { _ in Int.random(in: 0..<5, using: &random) == 0 })
      let way = Int.random(in: 0..<4, using: &random)
      for _ in 0..<Int.random(in: 0..<6, using: &random) {
        let isRemoval = way == 0 || way == 2 && Bool.random(using: &random)
        if isRemoval || way == 3, !now.isEmpty {
          let index = Int.random(in: now.indices, using: &random)
          let member = now.remove(at: index)
          touched.insert(member)
          // Puts another in its place, or itself in another's.
          if way == 3, isOrdered {
            let isMove = Int.random(in: 0..<3, using: &random) == 0
            let new = isMove ? member : .integer(Int64.random(in: 0..<300, using: &random))
            now.insert(new, at: isMove ? Int.random(in: 0...now.count, using: &random) : index)
            touched.insert(new)
          }
        } else if !isRemoval {
          let member = Value.integer(Int64.random(in: 0..<300, using: &random))
          touched.insert(member)
          let place = Int.random(in: 0...now.count, using: &random)
          if isOrdered { now.insert(member, at: place) } else { now.insert(member) }
        }
      }
      let found = Self.text(MemberDifference(from: then, to: now, touched: touched))
      let expected = Self.expected(then.array, now.array, isOrdered: isOrdered)
      let (before, after) = (Value.members(then).json, Value.members(now).json)
      #expect(found == expected, "KEYWAY_TEST_SEED=\(seed), round \(round): \(before) \(after)")
      if found != expected { return }
    }
  }
}
