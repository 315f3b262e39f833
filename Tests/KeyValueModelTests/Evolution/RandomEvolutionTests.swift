import TestKit
import Testing

@testable import KeyValueModel

@Suite("Random evolutions of random data")
struct RandomEvolutionTests {
  /// A random schema with objects in it.
  private struct Populated {
    var world: RandomWorld
    var model: Model

    init(seed: UInt64) throws {
      // A world stays empty if all its objects require others, in a cycle.
      var attempt: UInt64 = 0
      repeat {
        world = try RandomWorld(seed: seed &+ attempt &* 7_919)
        model = Model(schema: world.schema)
        for _ in 0..<120 { _ = try? model.commit(Transaction([world.operation(on: model.state)])) }
        attempt += 1
      } while model.state.count < 10 && attempt < 100
    }

    /// The entities of the schema file with their keys, as text.
    var entities: [(name: String, head: String, keys: [String])] {
      world.yaml.split(separator: "\n").dropFirst().map { line in
        let parts = line.split(separator: "{", maxSplits: 2).map(String.init)
        let keys = parts[2].dropLast(3).split(separator: "}, ").map { "\($0)}" }
        return (String(parts[0].filter { !" :".contains($0) }), parts[1], keys)
      }
    }
  }

  private static func yaml(_ entities: [(name: String, head: String, keys: [String])]) -> String {
    "entities:\n"
      + entities.map { "  \($0.name): {\($0.head){\($0.keys.joined(separator: ", "))}}" }.joined(separator: "\n")
  }

  @Test("Under a schema that says more, every old key path reads the same", arguments: 0..<20)
  func superset(round: Int) throws {
    let seed = seed &+ UInt64(round)
    var populated = try Populated(seed: seed)
    let yaml = Self.extended(populated.entities, &populated.world.random)
    let place: Comment = "seed \(seed)\n\(populated.world.yaml)\n\(yaml)"
    let evolution = SchemaEvolution(from: populated.world.schema, to: try Schema(yaml: yaml))
    let migration: Migration
    do throws(MigrationRefusal) {
      migration = try evolution.migrated(populated.model.state, revision: populated.model.revision + 1)
    } catch {
      // A new inverse that holds one object may find several that name it.
      #expect(error.obstacles.allSatisfy { $0.reason == "can hold only one object, but several name it" }, place)
      return
    }
    #expect(faults(in: migration.state) == [], place)
    #expect(migration.state.count == populated.model.state.count, place)
    let (before, after) = (populated.model.state, migration.state)
    var compared = 0
    for (reference, record) in before.all {
      #expect(after.record(reference)?.createdAt == record.createdAt, place)
      for text in Self.paths(of: record.entity, in: before.schema) {
        let old = try before.schema.resolve(text, from: record.entity)
        let new = try after.schema.resolve(text, from: after.requireRecord(reference).entity)
        let values = (before.value(of: reference, at: old).json, after.value(of: reference, at: new).json)
        if values.0 != values.1 { Issue.record("\(reference).\(text): \(values)\n\(place)") }
        compared += 1
      }
    }
    #expect(compared > 20, place)
  }

  /// Returns the paths of every key, and of every key after a relationship.
  private static func paths(of entity: Entity, in schema: Schema) -> [String] {
    entity.keys.flatMap { key in
      guard let destination = key.relationship.flatMap({ schema.entity(named: $0.destination) }) else {
        return [key.name]
      }
      return [key.name] + destination.keys.map { "\(key.name).\($0.name)" }
    }
  }

  /// Returns the same entities in another order, with additional keys, computed keys, indexes and inverses.
  private static func extended(
    _ entities: [(name: String, head: String, keys: [String])], _ random: inout SplitMix64
  ) -> String {
    var entities = entities
    for index in entities.indices {
      let name = entities[index].name
      for position in entities[index].keys.indices where !entities[index].keys[position].contains("inverse") {
        let key = entities[index].keys[position]
        let words = key.split { ": {,}".contains($0) }.map(String.init)
        guard words[1].hasPrefix("to"), words[2].hasPrefix("E"), Bool.random(using: &random),
          let far = entities.firstIndex(where: { $0.name == words[2] })
        else { continue }
        let side =
          ["toMany: \(name)", "toMany: \(name), ordered: true", "toOne: \(name)"].randomElement(using: &random) ?? ""
        entities[index].keys[position] = key.replacing("}", with: ", inverse: far\(name)\(words[0])}")
        entities[far].keys.append("far\(name)\(words[0]): {\(side), inverse: \(words[0])}")
      }
      entities[index].keys += [
        "t\(name): {type: string}", "d\(name): {type: integer, default: 4, optional: \(Bool.random(using: &random))}",
        "m\(name): {toMany: date, ordered: true}", "o\(name): {toOne: New}", "c\(name): {computed: 'n\(index) + 1'}",
      ].filter { _ in Bool.random(using: &random) }
      entities[index].keys.shuffle(using: &random)
    }
    entities.append(("New", "keys: ", ["x: {type: string, optional: false}"]))
    return yaml(entities.shuffled(using: &random))
  }

  @Test("Names changed and changed back leave everything as it was", arguments: 0..<20)
  func renames(round: Int) throws {
    let seed = seed &+ UInt64(round)
    var populated = try Populated(seed: seed)
    let names = populated.entities.map(\.name)
    let others = names.shuffled(using: &populated.world.random)
    let keys = populated.world.schema.entities.flatMap { entity in
      entity.keys.map(\.name).filter { key in
        entity.parent.flatMap(populated.world.schema.entity(named:))?.indexOfKey(key) == nil
      }.map { (entity: entity.name, key: $0) }
    }
    let there = zip(names, others).filter(!=)
    var steps = keys.map { "rename \($0.entity).\($0.key) k\($0.key)" }
    steps += there.map { "rename \($0.0) T\($0.0)" } + there.map { "rename T\($0.0) \($0.1)" }
    var back = there.map { "rename \($0.1) T\($0.0)" } + there.map { "rename T\($0.0) \($0.0)" }
    back += keys.map { "rename \($0.entity).k\($0.key) \($0.key)" }
    var text = ""
    for character in populated.world.yaml.replacing("E", with: "#E") { text.append(character) }
    for (name, other) in zip(names, others) { text = text.replacing("#\(name)", with: other) }
    let known = Set(keys.map(\.key))
    let renamed = Self.replacingWords(in: text) { known.contains($0) ? "k\($0)" : $0 }
    let place: Comment = "seed \(seed)\n\(populated.world.yaml)\n\(renamed)\n\(steps)"
    let (old, new) = (populated.world.schema, try Schema(yaml: renamed))
    let first = try SchemaEvolution(from: old, to: new, steps: steps.map { try MigrationStep($0) })
      .migrated(populated.model.state, revision: populated.model.revision + 1)
    #expect(faults(in: first.state) == [], place)
    let second = try SchemaEvolution(from: new, to: old, steps: back.map { try MigrationStep($0) })
      .migrated(first.state, revision: populated.model.revision + 2)
    #expect(faults(in: second.state) == [], place)
    let revision = populated.model.revision
    #expect(
      Self.withoutRevisions(portrayal(of: Model(state: second.state, revision: revision)))
        == Self.withoutRevisions(portrayal(of: populated.model)), place)
  }

  private static func replacingWords(in text: String, _ replacement: (String) -> String) -> String {
    var (result, word) = ("", "")
    for character in text + "\n" {
      if character.isLetter || character.isNumber {
        word.append(character)
      } else {
        result += replacement(word)
        result.append(character)
        word = ""
      }
    }
    return result
  }

  private static func withoutRevisions(_ lines: [String]) -> [String] {
    lines.map { line in
      line.split(separator: " ").filter { !$0.hasPrefix("@") }.joined(separator: " ")
    }
  }

  @Test("From any schema to any other, what is told to be done can be done", arguments: 0..<20)
  func advice(round: Int) throws {
    let seed = seed &+ UInt64(round)
    let populated = try Populated(seed: seed)
    let target = try RandomWorld(seed: seed &+ 1_000_000)
    var steps: [MigrationStep] = []
    let revision = populated.model.revision + 1
    for _ in 0..<60 {
      let place: Comment = "seed \(seed)\n\(populated.world.yaml)\n\(target.yaml)\n\(steps)"
      let evolution = SchemaEvolution(from: populated.world.schema, to: target.schema, steps: steps)
      let refusal: MigrationRefusal
      do throws(MigrationRefusal) {
        let migration = try evolution.migrated(populated.model.state, revision: revision)
        #expect(faults(in: migration.state) == [], place)
        return
      } catch {
        refusal = error
      }
      let obstacle = try #require(refusal.obstacles.first)
      guard obstacle.entity != nil else {
        Issue.record("\(obstacle)\n\(place)")
        return
      }
      steps = Self.extended(steps, for: obstacle, target.schema, populated.model.state)
    }
    Issue.record("no end: \(steps) of seed \(seed)\n\(populated.world.yaml)\n\(target.yaml)")
  }

  /// Returns the steps with the one that an obstacle asks for.
  private static func extended(
    _ steps: [MigrationStep], for obstacle: MigrationObstacle, _ schema: Schema, _ state: ModelState
  ) -> [MigrationStep] {
    guard let step = step(for: obstacle, schema, state), !steps.contains(step) else {
      // A key that needs a different object for each cannot be filled with one value: the objects are dropped.
      let entity = obstacle.examples.first?.object.entity ?? obstacle.entity ?? ""
      return steps + [.dropEntity(entity)]
    }
    // A fill comes last: it sets the keys that the steps before it leave without a value.
    guard !step.description.hasPrefix("fill") else { return steps + [step] }
    guard step.description.contains(".") else { return [step] + steps }
    // A key is converted or dropped, not both.
    let subject = step.description.split(separator: " ")[1].split(separator: ".")
    return [step]
      + steps.filter { other in
        let parts = other.description.split(separator: " ")[1].split(separator: ".")
        guard !other.description.hasPrefix("fill"), parts.count == 2, parts[1] == subject[1] else { return true }
        // The entities that extend this one inherit the key, and lose it.
        return state.schema.entity(named: String(parts[0]))?.isKind(of: String(subject[0])) == false
      }
  }

  /// Returns the first step of the remedy, with a value if it needs one.
  private static func step(for obstacle: MigrationObstacle, _ schema: Schema, _ state: ModelState) -> MigrationStep? {
    guard let remedy = obstacle.remedy?.split(separator: "`").first.map(String.init) else { return nil }
    guard remedy.hasSuffix(" VALUE") else { return try? MigrationStep(remedy) }
    guard let entity = obstacle.entity.flatMap(schema.entity(named:)),
      let key = obstacle.key.flatMap(entity.indexOfKey).map({ entity.keys[$0] })
    else { return nil }
    var value: String?
    if let attribute = key.valueAttribute {
      value = attribute.type == .integer ? "1" : "\"a\""
    } else if let destination = key.relationship?.destination {
      let candidates = state.all.map(\.key).filter { schema.entity(named: $0.entity)?.isKind(of: destination) == true }
      value = candidates.min().map { "\"\($0)\"" }
    }
    return value.flatMap { try? MigrationStep(remedy.replacing("VALUE", with: $0)) }
  }
}
