import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("The entity that a reference names")
struct NameTableTests {
  @Test("It is the one of that name, however many there are and however alike; another name has none")
  func lookup() throws {
    var random = SplitMix64(seed: seed)
    for count in [1, 2, 3, 7, 40, 300] {
      // Names of few letters, many of which begin another.
      var names: Set<String> = []
      while names.count < count {
        let length = Int.random(in: 1...9, using: &random)
        names.insert(String((0..<length).map { _ in "AaB_9".randomElement(using: &random) ?? "A" }))
        names = names.filter { $0.first?.isLetter == true }
      }
      let keys = "keys: { x: { type: integer } }"
      let schema = try Schema(yaml: "entities:\n" + names.map { "  \($0): { \(keys) }\n" }.joined())
      for name in names.sorted() {
        let id = String(repeating: "1", count: Int.random(in: 1...30, using: &random))
        let reference = try #require(Reference("\(name)/\(id)"))
        #expect(schema.entity(of: reference)?.name == name, "seed \(seed)")
        #expect(try schema.requireEntity(of: reference).name == name, "seed \(seed)")
        for other in [name + "0", String(name.dropLast())] where !names.contains(other) {
          guard let unknown = Reference("\(other)/1") else { continue }
          #expect(schema.entity(of: unknown) == nil, "seed \(seed), \(other)")
          #expect(throws: ModelError.self) { try schema.requireEntity(of: unknown) }
        }
      }
    }
  }
}
