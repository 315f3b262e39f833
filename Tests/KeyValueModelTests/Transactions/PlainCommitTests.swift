import Seeding
import Testing

@testable import KeyValueModel

@Suite("A transaction that sets one attribute")
struct PlainCommitTests {
  @Test("It does the same, and is refused for the same reasons, as with the machinery of all others")
  func same() throws {
    let plainCount = try (0..<10).reduce(0) { try $0 + compare(seed: seed &+ UInt64($1)) }
    // Few schemas have no attribute that can be set so.
    #expect(plainCount > 0, "seed \(seed)")
  }

  /// Compares both ways in a random world; gives how often the plain one was taken.
  private func compare(seed: UInt64) throws -> Int {
    var world = try RandomWorld(seed: seed)
    var model = Model(schema: world.schema)
    var plainCount = 0
    for number in 0..<300 {
      let place: Comment = "operation \(number) of seed \(seed)\n\(world.yaml)"
      let operation = world.operation(on: model.state)
      guard case .set(let object, let keyPath, let value) = operation else {
        _ = try? model.commit(Transaction([operation]))
        continue
      }
      var limits = TransactionLimits.unlimited
      if number.isMultiple(of: 3) {
        limits.objectBytes = Int.random(in: 0...60, using: &world.random)
        limits.bytes = Int.random(in: 0...20, using: &world.random)
        limits.steps = Int.random(in: 0...20, using: &world.random)
      }
      // Preparations, be they of nothing, are for the machinery.
      var prepared = Transaction([operation], writer: "somebody")
      prepared.preparations = [.none]
      var (plainly, other) = (model, model)
      let commit = plainly.commit(settingPlainly: keyPath, of: object, to: value, writer: "somebody", limits: limits)
      let expected = Result { try other.commit(prepared, limits: limits) }
      if let commit {
        plainCount += 1
        let isSame = portrayal(of: commit) == portrayal(of: try expected.get())
        #expect(isSame, place)
      } else {
        _ = try? plainly.commit(prepared, limits: limits)
      }
      #expect(portrayal(of: plainly) == portrayal(of: other), place)
      #expect(
        inconsistencies(in: plainly.state, others: (world.references, [.null, .integer(1), .string("text 1")])) == [],
        place)
      model = plainly
    }
    return plainCount
  }
}
