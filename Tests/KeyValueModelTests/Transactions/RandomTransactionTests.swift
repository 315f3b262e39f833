import TestKit
import Testing

@testable import KeyValueModel

@Suite("Random transactions over random schemas")
struct RandomTransactionTests {
  @Test("All sides agree after each, and one that fails leaves everything as it was", arguments: 0..<20)
  func random(round: Int) throws {
    let seed = seed &+ UInt64(round)
    var world = try RandomWorld(seed: seed)
    var model = Model(schema: world.schema)
    var failures = 0
    for number in 0..<45 {
      let place: Comment = "transaction \(number) of seed \(seed)\n\(world.yaml)"
      var trial = model
      var operations: [KeyValueModel.Operation] = []
      var failing: KeyValueModel.Operation?
      for _ in 0..<Int.random(in: 1...7, using: &world.random) {
        let operation = world.operation(on: trial.state)
        if (try? trial.commit(Transaction([operation]))) != nil {
          operations.append(operation)
        } else {
          failing = operation
        }
        if let failing, Int.random(in: 0..<4, using: &world.random) == 0 {
          failures += 1
          expectFailure(of: operations + [failing], in: &model, others: world.references, place)
        }
        failing = nil
      }
      let broken = world.failure(on: trial.state)
      if Int.random(in: 0..<3, using: &world.random) == 0 {
        failures += 1
        expectFailure(of: operations + [broken], in: &model, others: world.references, place)
      }
      let before = model.state
      let commit = try model.commit(Transaction(operations))
      let faults = inconsistencies(
        in: model.state, others: (world.references, [.null, .integer(1), .string("text 1")]))
      #expect(faults == [], "\(place)\n\(operations)")
      // The operations, each in a transaction of its own, have the same result.
      #expect(Self.values(of: model.state) == Self.values(of: trial.state), place)
      #expect(Self.unexplained(commit, from: before, to: model.state) == [], place)
      guard faults.isEmpty else { return }
    }
    #expect(failures > 5, "seed \(seed)")
  }

  private func expectFailure(
    of operations: [KeyValueModel.Operation], in model: inout Model, others: [Reference], _ place: Comment
  ) {
    let before = portrayal(of: model)
    var caught: ModelError?
    do throws(ModelError) {
      _ = try model.commit(Transaction(operations))
    } catch {
      caught = error
    }
    #expect(caught != nil, place)
    if operations.count > 1 { #expect(caught?.operation == operations.count - 1, place) }
    #expect(portrayal(of: model) == before, place)
    #expect(inconsistencies(in: model.state, others: (others, [.null, .integer(1), .string("text 1")])) == [], place)
  }

  private static func values(of state: ModelState) -> [String] {
    state.schema.entities.flatMap { entity in
      state.references(of: entity).map { "\($0) \(state.record($0)?.values.map(\.json) ?? [])" }
    }
  }

  /// Returns the changes between two states that the steps of a commit omit or describe wrongly.
  private static func unexplained(_ commit: Commit, from before: ModelState, to after: ModelState) -> [String] {
    var past = PastState(before: [commit], of: after)
    var faults: [String] = []
    for (object, record) in commit.before where past.record(object)?.values != before.record(object)?.values {
      faults.append("\(object) was not \(record?.values.map(\.json) ?? [])")
    }
    for step in commit.steps {
      let former = past
      past.apply(step)
      guard case .change(let changes) = step.kind else { continue }
      let told = Set(changes.map { Told(object: $0.object, key: $0.key) })
      if told.count != changes.count {
        faults.append("a key is told twice: \(changes.map { "\($0.object).\($0.key)" })")
      }
      for write in step.writes {
        guard let old = former.record(write.object), let new = write.record else { continue }
        for (index, key) in new.entity.keys.enumerated() {
          guard let storage = key.storage, old.values[storage] != new.values[storage] else { continue }
          if !told.contains(Told(object: write.object, key: index)) {
            faults.append("\(write.object).\(key.name) is not told")
          }
        }
      }
      for change in changes {
        faults += wrong(change, from: former, to: past).map { "\(change.object).\(change.key) \($0)" }
      }
    }
    for entity in after.schema.entities {
      for object in after.references(of: entity) where past.record(object)?.values != after.record(object)?.values {
        faults.append("\(object) does not become what it is")
      }
    }
    return faults
  }

  private struct Told: Hashable {
    let object: Reference
    let key: Int
  }

  /// Returns the faults of a change whose inserted and removed members do not turn the old list into the new one.
  private static func wrong(_ change: Commit.KeyChange, from past: PastState, to present: PastState) -> [String] {
    guard let collection = change.collection else { return [] }
    guard case .members(let new) = present.value(of: change.object, at: [change.key]) else {
      return ["is no collection"]
    }
    // An object that the operation created had no members before.
    var old = MemberList(isOrdered: new.isOrdered)
    if case .members(let former) = past.value(of: change.object, at: [change.key]) { old = former }
    guard old.isOrdered == (collection.indexes != nil) else { return ["has indexes, or none"] }
    var list = Array(old)
    if let indexes = collection.indexes {
      if indexes != indexes.sorted() { return ["has indexes out of order"] }
      if collection.kind != .insertion {
        guard indexes.map({ list[$0] }) == collection.removed else { return ["removed \(collection.removed)"] }
        for index in indexes.reversed() { list.remove(at: index) }
      }
      if collection.kind != .removal {
        for (index, member) in zip(indexes, collection.inserted) { list.insert(member, at: index) }
      }
      return list == Array(new) ? [] : ["makes \(list) and not \(Array(new))"]
    }
    let was = Set(list)
    let made = was.subtracting(collection.removed).union(collection.inserted)
    let isDifference = was.isSuperset(of: collection.removed) && was.isDisjoint(with: collection.inserted)
    return made == Set(new) && isDifference ? [] : ["makes \(made)"]
  }
}
