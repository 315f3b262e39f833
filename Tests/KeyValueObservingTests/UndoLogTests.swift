import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("The undo log")
struct UndoLogTests {
  @Test("Gives what the first write since some point found, for every point")
  func everyStart() throws {
    var random = SplitMix64(seed: seed)
    var model = Model(schema: try Schema(yaml: "entities: {A: {keys: {x: {type: integer}}}}"))
    let objects = try (1...5).map { try ref("A/\($0)") }
    var log = UndoLog()
    // What each object was before each write, naïvely.
    var states: [ModelState] = []
    for number in 0..<200 {
      let object = objects.randomElement(using: &random) ?? objects[0]
      states.append(model.state)
      log.append(object, model.state.record(object))
      let isThere = model.state.record(object) != nil
      let deletes = isThere && Bool.random(using: &random)
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
