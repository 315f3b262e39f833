import Support

@testable import KeyValueModel

/// What does not fit together in a state: extents, inverses, referrers, indexes and lists, compared with what the
/// objects alone say. `others` are references and values that may have been there before and must have left nothing.
func inconsistencies(
  in state: ModelState, others: (references: [Reference], values: [Value]) = ([], [])
) -> [String] {
  let counts = Census(state)
  return counts.faults + counts.brokenRelationships() + counts.brokenReferrers(others.references)
    + counts.brokenIndexes(others.values) + counts.brokenLists()
}

/// The objects of a state, found through the extents.
private struct Census {
  let state: ModelState
  var objects: [(reference: Reference, record: ObjectRecord)] = []
  var faults: [String] = []

  init(_ state: ModelState) {
    self.state = state
    for entity in state.schema.entities {
      for reference in state.references(of: entity) where reference.entity == entity.name {
        guard let record = state.record(reference) else {
          faults.append("\(reference) is in an extent and not there")
          continue
        }
        if record.entity !== entity { faults.append("\(reference) is a \(record.entity.name)") }
        if record.values.count != entity.storageCount {
          faults.append("\(reference) has \(record.values.count) values")
        }
        let bytes = record.values.reduce(0) { $0 + $1.textBytes }
        if record.textBytes != bytes { faults.append("\(reference) counts \(record.textBytes) bytes of \(bytes)") }
        let size = ObjectRecord.size(of: record.values, entity, reference, record.lease)
        if record.size != size { faults.append("\(reference) counts \(record.size) where \(size) is right") }
        objects.append((reference, record))
      }
      let family = Set(state.schema.family(of: entity).map(\.name))
      if !state.references(of: entity).allSatisfy({ family.contains($0.entity) }) {
        faults.append("the extent of \(entity.name) has strangers")
      }
    }
    let memoryBytes = objects.reduce(0) { $0 + $1.record.memoryBytes }
    if memoryBytes != state.memoryBytes { faults.append("\(state.memoryBytes) bytes are counted of \(memoryBytes)") }
    if objects.count != state.count { faults.append("\(objects.count) objects in extents of \(state.count)") }
  }

  /// The targets of each relationship of an object.
  private func relationships(of record: ObjectRecord) -> [(key: Key, storage: Int, targets: [Reference])] {
    record.entity.keys.compactMap { key in
      guard key.relationship != nil, let storage = key.storage else { return nil }
      let values: [Value] =
        switch record.values[storage] {
        case .members(let list): Array(list)
        case .null: []
        case let other: [other]
        }
      return (key, storage, values.compactMap { if case .reference(let target) = $0 { target } else { nil } })
    }
  }

  func brokenRelationships() -> [String] {
    var broken: [String] = []
    for (reference, record) in objects {
      for (key, _, targets) in relationships(of: record) {
        if targets.isEmpty, !key.isOptional, !key.isToMany {
          broken.append("\(reference).\(key.name) must not be null")
        }
        for target in targets {
          guard let other = state.record(target) else {
            broken.append("\(reference).\(key.name) names \(target), which is not there")
            continue
          }
          if !other.entity.isKind(of: key.relationship?.destination ?? "") {
            broken.append("\(reference).\(key.name) names \(target), which is of a wrong entity")
          }
          guard let inverse = key.relationship?.inverse else { continue }
          if !Self.names(reference, other, inverse) { broken.append("\(target).\(inverse) does not name \(reference)") }
        }
      }
    }
    return broken
  }

  private static func names(_ reference: Reference, _ record: ObjectRecord, _ key: String) -> Bool {
    guard let storage = record.entity.keys.first(where: { $0.name == key })?.storage else { return false }
    if case .members(let list) = record.values[storage] { return list.contains(.reference(reference)) }
    return record.values[storage] == .reference(reference)
  }

  func brokenReferrers(_ others: [Reference]) -> [String] {
    var expected: [Reference: Set<String>] = [:]
    for (reference, record) in objects {
      for (key, storage, targets) in relationships(of: record) where key.relationship?.inverse == nil {
        for target in targets { expected[target, default: []].insert("\(reference).\(storage)") }
      }
    }
    return (objects.map(\.reference) + others).compactMap { reference in
      let found = Set(state.referrers(of: reference).map { "\($0.object).\($0.storage)" })
      return found == expected[reference] ?? [] ? nil : "\(reference) is named by \(found)"
    }
  }

  func brokenIndexes(_ others: [Value]) -> [String] {
    var broken: [String] = []
    for entity in state.schema.entities {
      for (index, key) in entity.keys.enumerated() where key.isIndexed {
        let isOverDates = state.schema.type(of: key) == .attribute(.date)
        let family = objects.filter { $0.record.entity.isKind(of: entity.name) }
        let values = family.map { $0.record.values[key.storage ?? 0] }
        for value in Set(values + others) {
          let same = zip(family, values).filter { Self.isSame($0.1, value, isOverDates) }.map(\.0.reference)
          let found = state.references(of: entity, whereKey: index, is: value)
          if found != same.sorted() { broken.append("\(entity.name).\(key.name) \(value.json): \(found ?? [])") }
        }
      }
    }
    return broken
  }

  private static func isSame(_ left: Value, _ right: Value, _ areDates: Bool) -> Bool {
    guard areDates, case .string(let left) = left, case .string(let right) = right else { return left == right }
    return RFC3339Instant(left) == RFC3339Instant(right)
  }

  func brokenLists() -> [String] {
    var broken: [String] = []
    for (reference, record) in objects {
      for key in record.entity.keys {
        guard let storage = key.storage else { continue }
        switch (key.kind, record.values[storage]) {
        case (.toMany(let toMany), .members(let list)):
          broken += list.checkInvariants().map { "\(reference).\(key.name): \($0)" }
          if list.isOrdered != toMany.isOrdered { broken.append("\(reference).\(key.name) has the wrong order") }
        case (.toMany, _), (_, .members): broken.append("\(reference).\(key.name) is \(record.values[storage].json)")
        default: break
        }
      }
    }
    return broken
  }
}
