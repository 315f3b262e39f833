@testable import KeyValueModel
@testable import KeyValueObserving

/// Invariants of a state and of an index, checked against a computation from the objects.
enum StateInvariants {
  static func broken(in state: ModelState, _ world: OracleWorld) -> [String] {
    brokenInverses(in: world) + brokenReferrers(in: state) + brokenIndexes(in: state)
  }

  private static func brokenInverses(in world: OracleWorld) -> [String] {
    var broken: [String] = []
    for object in world.objects.keys {
      for key in world.storedKeys(object) {
        guard let inverse = key.relationship?.inverse else { continue }
        for far in targets(world.objects[object]?[key.name] ?? .null)
        where !targets(world.objects[far]?[inverse] ?? .null).contains(object) {
          broken.append("\(far).\(inverse) does not name \(object), whose \(key.name) it is")
        }
      }
    }
    return broken
  }

  private static func targets(_ value: Value) -> [String] {
    (value.elements ?? [value]).compactMap { if case .reference(let reference) = $0 { reference.text } else { nil } }
  }

  /// Returns the faults of the referrers: each object that names another without an inverse must be found, and no
  /// other.
  private static func brokenReferrers(in state: ModelState) -> [String] {
    var expected: [Reference: Set<Referrers.Referrer>] = [:]
    let all = Set(state.schema.entities.flatMap { state.references(of: $0) })
    for object in all {
      guard let record = state.record(object) else { continue }
      for key in record.entity.keys where key.relationship != nil && key.relationship?.inverse == nil {
        guard let storage = key.storage else { continue }
        for name in targets(record.values[storage]) {
          guard let target = Reference(name) else { continue }
          expected[target, default: []].insert(.init(object: object, storage: storage))
        }
      }
    }
    let names = ["A", "B", "C"].flatMap { entity in (1...3).compactMap { Reference("\(entity)/\($0)") } }
    return Set(names).union(expected.keys).compactMap { target in
      let found = Set(state.referrers(of: target))
      return found == expected[target] ?? [] ? nil : "\(target) has the referrers \(found.map(\.object))"
    }
  }

  private static func brokenIndexes(in state: ModelState) -> [String] {
    var broken: [String] = []
    for entity in state.schema.entities {
      let objects = state.references(of: entity)
      for (index, key) in entity.keys.enumerated() where key.isIndexed {
        let isDate = state.schema.type(of: key) == .attribute(.date)
        for value in Set(objects.map { state.value(of: $0, at: [index]) }) {
          let found = state.references(of: entity, whereKey: index, is: value) ?? []
          let expected = objects.filter { isSame(state.value(of: $0, at: [index]), value, isDate) }
          if found != expected { broken.append("\(entity.name).\(key.name) is indexed wrongly for \(value.json)") }
        }
      }
    }
    return broken
  }

  private static func isSame(_ left: Value, _ right: Value, _ isDate: Bool) -> Bool {
    guard isDate, case .string(let left) = left, case .string(let right) = right else { return left == right }
    let moment = { (text: String) in OracleFold.dates.first { $0.text == text }?.moment }
    return moment(left) == moment(right)
  }

  /// Returns the names of the properties that are not empty in an index without observations.
  static func leftovers(in index: ObserverIndex) -> [String] {
    leftovers(of: index, "index")
  }

  private static func leftovers(of value: Any, _ name: String) -> [String] {
    if let collection = value as? any Collection { return collection.isEmpty ? [] : [name] }
    return Mirror(reflecting: value).children.flatMap { leftovers(of: $0.value, "\(name).\($0.label ?? "")") }
  }
}

/// A client's application of the changes that it receives.
enum Folding {
  static func apply(_ change: Change, to value: Value) throws -> [Value] {
    guard let list = value.elements else { throw Difference(text: "\(line(change)) is about \(value.json)") }
    let (old, new) = (change.old?.elements ?? [], change.new?.elements ?? [])
    // A prior announces the old values, and changes nothing.
    let indexes = change.indexes
    if let indexes { try agree(indexes == Array(Set(indexes)).sorted(), "\(line(change)): places out of order") }
    var result = list
    if change.kind != .insertion {
      for (offset, member) in old.enumerated() {
        try agree(list.contains(member), "\(line(change)): \(member.json) is not in \(value.json)")
        guard let indexes else { continue }
        try agree(list[indexes[offset]] == member, "\(line(change)): not at its place in \(value.json)")
      }
      result.removeAll { old.contains($0) }
    }
    if change.isPrior { return list }
    for (offset, member) in new.enumerated() {
      try agree(!result.contains(member), "\(line(change)): \(member.json) is twice in \(value.json)")
      if let indexes { result.insert(member, at: indexes[offset]) } else { result.append(member) }
    }
    return indexes == nil ? OracleFold.sorted(result) : result
  }
}
