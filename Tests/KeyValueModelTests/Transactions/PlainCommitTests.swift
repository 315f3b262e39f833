import TestKit
import Testing

@testable import KeyValueModel

@Suite("A transaction that sets one attribute")
struct PlainCommitTests {
  @Test("It does the same, and is refused for the same reasons, as with the machinery of all others")
  func same() throws {
    let plainCount = try (0..<10).reduce(0) { try $0 + compare(seed: seed &+ UInt64($1)) }
    // Nearly every schema has an attribute that can be set this way.
    #expect(plainCount > 0, "seed \(seed)")
  }

  /// Compares both ways to commit in a random world. Returns the number of plain commits.
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

  @Test("Rules that see the object, what it was, and others through it decide as they do with the machinery")
  func rules() throws {
    let schema = try Schema(
      yaml: """
        access: { read: 'true', create: 'true' }
        entities:
          Team:
            access: { update: 'bonus < 50 && total < 120.0 && before.total > 10.0' }
            keys:
              bonus:   { type: integer, default: 0 }
              members: { toMany: Player, inverse: team }
              total:   { type: number, computed: 'members.@sum.score' }
          Player:
            access: { update: 'owner == identity.sub && score > before.score - 20.0 && team.total < 90.0' }
            keys:
              owner: { type: string }
              score: { type: number, default: 20 }
              note:  { type: string }
              team:  { toOne: Team, inverse: members }
        """)
    let claims: JSONObject = ["sub": .string("ann")]
    let access = WriteAccess(claims: claims, viewer: Viewer(claims: claims, in: schema), in: schema)
    var model = Model(schema: schema)
    _ = try model.commit(
      Transaction([
        .create("Team/1"), .create("Player/1", #"{"owner":"ann","team":"Team/1"}"#),
        .create("Player/2", #"{"owner":"ann","team":"Team/1"}"#), .create("Player/3", #"{"owner":"bob"}"#),
      ]))
    var random = SplitMix64(seed: seed)
    var outcomes: [Bool: Int] = [:]
    for number in 0..<400 {
      let player = "Player/\(Int.random(in: 1...3, using: &random))"
      let operation: KeyValueModel.Operation =
        switch Int.random(in: 0..<8, using: &random) {
        case 0: try .set("Team/1.bonus", to: "\(Int.random(in: 0...60, using: &random))")
        case 1: try .set("\(player).note", to: #""note \#(number)""#)
        case 2: try .set("\(player).owner", to: Bool.random(using: &random) ? #""ann""# : #""bob""#)
        default: try .set("\(player).score", to: "\(Int.random(in: 0...60, using: &random))")
        }
      // Preparations, be they of nothing, are for the machinery.
      var (plain, prepared) = (Transaction([operation]), Transaction([operation]))
      (plain.access, prepared.access, prepared.preparations) = (access, access, [.none])
      var (plainly, other) = (model, model)
      let results = (Result { try plainly.commit(plain) }, Result { try other.commit(prepared) })
      let place: Comment = "operation \(number) of seed \(seed): \(operation)"
      switch results {
      case (.success(let commit), .success(let expected)):
        #expect(portrayal(of: commit) == portrayal(of: expected), place)
      case (.failure(let error), .failure(let expected)):
        #expect(error as? ModelError == expected as? ModelError, place)
      default: Issue.record(place)
      }
      outcomes[(try? results.0.get()) != nil, default: 0] += 1
      #expect(portrayal(of: plainly) == portrayal(of: other), place)
      model = plainly
      // Reopens the objects that the rules closed.
      guard number.isMultiple(of: 10) else { continue }
      _ = try model.commit(
        Transaction([
          .set("Player/1.score", to: "20"), .set("Player/2.score", to: "20"), .set("Player/1.owner", to: #""ann""#),
        ]))
    }
    #expect(outcomes[true, default: 0] > 20 && outcomes[false, default: 0] > 20, "seed \(seed): \(outcomes)")
  }
}
