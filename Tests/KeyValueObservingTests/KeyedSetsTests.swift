import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Sets by keys of objects")
struct KeyedSetsTests {
  @Test("Has what a dictionary of sets has after the same changes, however it grows and shrinks")
  func oracle() throws {
    var random = SplitMix64(seed: seed)
    let keys = try (0..<400).map { number in
      ObservedKey(object: try #require(Reference("Note/\(number / 2)")), key: number % 2 - 1)
    }
    var sets = KeyedSets<Int>()
    var oracle: [ObservedKey: Set<Int>] = [:]
    // Few keys, then many, then fewer until none is left.
    for step in 0..<20_000 {
      let isGrowing = (step / 4_000).isMultiple(of: 2)
      let key = keys[Int.random(in: 0..<(isGrowing ? 400 : 100), using: &random)]
      let element = Int.random(in: 0..<3, using: &random)
      if Int.random(in: 0..<4, using: &random) < (isGrowing ? 3 : 1) {
        sets.insert(element, for: key)
        oracle[key, default: []].insert(element)
      } else {
        let exists = oracle[key] != nil
        oracle[key]?.remove(element)
        if oracle[key]?.isEmpty == true { oracle[key] = nil }
        #expect(sets.remove(element, from: key) == (exists && oracle[key] == nil), "seed \(seed)")
      }
      #expect(Set(sets[key]) == oracle[key] ?? [], "seed \(seed)")
    }
    for key in keys {
      #expect(Set(sets[key]) == oracle[key] ?? [] && sets.contains(key) == (oracle[key] != nil), "seed \(seed)")
    }
    #expect(sets.pairCount == oracle.values.reduce(0) { $0 + $1.count }, "seed \(seed)")
    for (key, elements) in oracle {
      for element in elements { sets.remove(element, from: key) }
      #expect(!sets.contains(key) && sets[key].isEmpty, "seed \(seed)")
    }
    #expect(sets.isEmpty && sets.pairCount == 0)
  }
}

@Suite("Small sets")
struct SmallSetTests {
  @Test("They have what a set has after the same changes, and one element in place")
  func oracle() {
    var random = SplitMix64(seed: seed)
    var small = SmallSet<Int>()
    var set: Set<Int> = []
    for _ in 0..<2000 {
      let element = Int.random(in: 0..<4, using: &random)
      if Bool.random(using: &random) {
        #expect(small.insert(element) == set.insert(element).inserted, "seed \(seed)")
      } else {
        small.remove(element)
        set.remove(element)
      }
      #expect(Set(small) == set && small.count == set.count && small.isEmpty == set.isEmpty, "seed \(seed)")
      #expect((0..<4).allSatisfy { small.contains($0) == set.contains($0) }, "seed \(seed)")
      #expect(small.only == (set.count == 1 ? set.first : nil), "seed \(seed)")
    }
  }
}

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

@Suite("Values by their place")
struct SlotTableTests {
  @Test("Is a dictionary whose ids ascend, whatever comes and goes")
  func random() {
    var random = SplitMix64(seed: seed)
    var table = SlotTable<Int>()
    var oracle: [SlotTable<Int>.ID: Int] = [:]
    var all: [SlotTable<Int>.ID] = []
    for number in 0..<5_000 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0, 1:
        let id = table.insert(number)
        #expect(all.last.map { $0 < id } ?? true)
        all.append(id)
        oracle[id] = number
      case 2:
        guard let id = all.randomElement(using: &random) else { continue }
        #expect(table.remove(id) == oracle.removeValue(forKey: id))
      default:
        guard let id = oracle.keys.min() else { continue }
        table[id]? += 1
        oracle[id]? += 1
      }
      #expect(table.count == oracle.count)
    }
    for id in all { #expect(table[id] == oracle[id]) }
    for id in all.shuffled(using: &random).prefix(all.count / 2) {
      #expect(table.remove(id) == oracle.removeValue(forKey: id))
    }
    #expect(Dictionary(uniqueKeysWithValues: table.entries.map { ($0.id, $0.value) }) == oracle)
    #expect(table.values.sorted() == oracle.values.sorted())
    for id in all { _ = table.remove(id) }
    #expect(table.count == 0 && all.allSatisfy { table[$0] == nil })
    let last = table.insert(7)
    #expect(all.allSatisfy { $0 < last && table[$0] == nil } && table[last] == 7)
  }
}

@Suite("The undo log")
struct UndoLogTests {
  @Test("Gives what the first write since some point found, for every point")
  func everyStart() throws {
    var random = SplitMix64(seed: seed)
    var model = Model(schema: try Schema(yaml: "entities: {A: {keys: {x: {type: integer}}}}"))
    let objects = try (1...5).map { try ref("A/\($0)") }
    var log = UndoLog()
    // The state before each commit, for a naive search.
    var states: [ModelState] = []
    for number in 0..<200 {
      let object = objects.randomElement(using: &random) ?? objects[0]
      states.append(model.state)
      log.append(object, model.state.record(object))
      let exists = model.state.record(object) != nil
      let deletes = exists && Bool.random(using: &random)
      _ = try model.commit(Transaction([deletes ? .delete(object) : .put(object, ["x": .integer(Int64(number))])]))
    }
    #expect(log.count == 200)
    for start in 0...200 {
      for object in objects {
        let former = log.record(object, at: start)
        let now = model.state.record(object)
        let expected = start < 200 ? states[start].record(object) : now
        #expect((former ?? now)?.values == expected?.values, "KEYWAY_TEST_SEED=\(seed), \(object) at \(start)")
      }
    }
    log.removeAll()
    #expect(log.count == 0 && objects.allSatisfy { log.record($0, at: 0) == nil })
  }
}
