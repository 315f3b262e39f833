import TestKit
import Testing

@testable import KeyValueObserving

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
