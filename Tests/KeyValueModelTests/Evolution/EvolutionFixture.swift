import Testing

@testable import KeyValueModel

/// Data under an old schema, a new schema, and steps between them.
struct EvolutionFixture {
  let evolution: SchemaEvolution
  var before: Model

  /// Creates a fixture of schemas without the `entities:` line, and objects as `Entity/id {…}` in the order of their
  /// creation.
  init(_ old: String, _ new: String, data: [String] = [], steps: [String] = []) throws {
    let schemas = try [old, new].map { try Schema(yaml: "entities: {\($0)}") }
    evolution = SchemaEvolution(from: schemas[0], to: schemas[1], steps: try steps.map { try MigrationStep($0) })
    before = Model(schema: schemas[0])
    for line in data {
      let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
      let values = parts.count == 2 ? parts[1] : "{}"
      _ = try before.commit(Transaction([.create(try ref(parts[0]), try body(values))]))
    }
  }

  /// Migrates the data, and expects that the resulting state is consistent.
  func migrated(_ place: Comment? = nil) throws -> Migration {
    let former = portrayal(of: before)
    let migration = try evolution.migrated(before.state, revision: before.revision + 1)
    #expect(portrayal(of: before) == former, "the old state changed")
    #expect(faults(in: migration.state) == [], place)
    return migration
  }

  /// Returns the lines of the refusal, without the first.
  func refusal() throws -> [String] {
    let former = portrayal(of: before)
    var refused: MigrationRefusal?
    do throws(MigrationRefusal) {
      _ = try evolution.migrated(before.state, revision: before.revision + 1)
    } catch {
      refused = error
    }
    #expect(portrayal(of: before) == former, "the old state changed")
    return try #require(refused, "nothing stood in the way").obstacles.map(\.description)
  }
}

/// Returns the inconsistencies of a state, including broken constraints and forbidden nulls.
func faults(in state: ModelState) -> [String] {
  var faults = inconsistencies(in: state)
  for (reference, record) in state.all {
    for key in record.entity.keys {
      guard let storage = key.storage else { continue }
      let value = record.values[storage]
      if value.isNull, !key.isOptional { faults.append("\(reference).\(key.name) is null") }
      guard let attribute = key.valueAttribute, !value.isNull else { continue }
      for element in key.isToMany ? value.elements ?? [] : [value] {
        do throws(Attribute.Refusal) {
          if try attribute.accepting(element) != element { faults.append("\(reference).\(key.name) has another form") }
        } catch {
          faults.append("\(reference).\(key.name) \(error.reason)")
        }
      }
    }
  }
  return faults
}

/// Every object as JSON, in the order of entities and references.
func objects(of state: ModelState) -> [String] {
  state.schema.entities.flatMap { entity in
    state.references(of: entity).filter { $0.entity == entity.name }.compactMap { reference in
      state.record(reference).map { record in
        var bytes: [UInt8] = []
        state.appendJSON(of: reference, record, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
      }
    }
  }
}
