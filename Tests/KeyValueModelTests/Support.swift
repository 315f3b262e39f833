import Support
import Testing

@testable import KeyValueModel

/// The reference that `text` names.
func ref(_ text: String) throws -> Reference {
  try #require(Reference(text), "\(text) is no reference")
}

/// The value of a JSON text.
func json(_ text: String) throws -> Value {
  try Value(json: text)
}

/// The JSON object of a text.
func body(_ text: String) throws -> JSONObject {
  guard case .object(let object) = try json(text) else { throw NotAnObject() }
  return object
}

struct NotAnObject: Error {}

/// A model with shorthands for tests of transactions.
struct Fixture {
  var model: Model

  init(_ yaml: String) throws {
    model = Model(schema: try Schema(yaml: yaml))
  }

  @discardableResult
  mutating func commit(_ operations: Operation..., preconditions: [Precondition] = []) throws -> Commit {
    try model.commit(Transaction(operations, preconditions: preconditions))
  }

  mutating func create(_ text: String, _ values: String = "{}") throws {
    try commit(.create(try ref(text), try body(values)))
  }

  mutating func put(_ text: String, _ values: String) throws {
    try commit(.put(try ref(text), try body(values)))
  }

  mutating func patch(_ text: String, _ values: String) throws {
    try commit(.patch(try ref(text), try body(values)))
  }

  mutating func set(_ text: String, _ keyPath: String, _ value: String) throws {
    try commit(.set(try ref(text), keyPath: keyPath, try json(value)))
  }

  mutating func delete(_ text: String) throws {
    try commit(.delete(try ref(text)))
  }

  /// The value for a key path as JSON.
  func value(_ text: String, _ keyPath: String) throws -> String {
    let reference = try ref(text)
    let path = try model.schema.resolve(keyPath, from: model.state.requireRecord(reference).entity)
    return model.state.value(of: reference, at: path).json
  }

  func exists(_ text: String) throws -> Bool {
    model.state.record(try ref(text)) != nil
  }

  /// Returns the error of the operations. Throws if they succeed.
  mutating func error(_ operations: [Operation], preconditions: [Precondition] = []) throws -> ModelError {
    let before = portrait
    var caught: ModelError?
    do throws(ModelError) {
      _ = try model.commit(Transaction(operations, preconditions: preconditions))
    } catch {
      caught = error
    }
    #expect(portrait == before, "a failed transaction left a trace")
    return try #require(caught, "nothing failed")
  }

  /// All visible contents of the model, for comparisons.
  var portrait: [String] { portrayal(of: model) }
}

/// Returns the contents of a model as lines: objects with revisions and values, members in their order, extents,
/// referrers, the revision.
func portrayal(of model: Model) -> [String] {
  let state = model.state
  var lines = ["revision \(model.revision), \(state.count) objects"]
  for entity in state.schema.entities {
    let references = state.references(of: entity)
    lines.append("\(entity.name): \(references)")
    for reference in references {
      guard let record = state.record(reference) else { continue }
      let values = record.values.map(\.json).joined(separator: " ")
      lines.append("\(reference) of \(record.entity.name) @\(record.revision) from \(record.createdAt): \(values)")
      lines.append("\(reference) named by \(state.referrers(of: reference).map { "\($0.object).\($0.storage)" })")
    }
  }
  return lines
}

/// Returns the inconsistencies of a state: extents, inverses, referrers, indexes and lists that differ from those
/// derived from the objects alone. `others` are references and values that may have existed before and must have left
/// no trace.
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

/// Operations as tests write them: places are `Entity/id.keyPath`, values are JSON.
extension KeyValueModel.Operation {
  static func create(_ text: String, _ values: String = "{}") throws -> Self {
    .create(try ref(text), try body(values))
  }

  static func delete(_ text: String) throws -> Self {
    .delete(try ref(text))
  }

  static func set(_ place: String, to value: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .set(reference, keyPath: keyPath, try json(value))
  }

  static func insert(_ members: String, into place: String, at indexes: [Int]? = nil) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .insert(reference, keyPath: keyPath, try newMembers(members), at: indexes)
  }

  static func remove(_ indexes: [Int], from place: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .removeIndexes(reference, keyPath: keyPath, indexes)
  }

  static func remove(_ members: String, from place: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .removeMembers(reference, keyPath: keyPath, try json(members).elements ?? [])
  }

  static func replace(_ indexes: [Int], of place: String, with members: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .replace(reference, keyPath: keyPath, at: indexes, try newMembers(members))
  }

  static func mutate(_ place: String, _ mutation: SetMutation, _ members: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .mutateSet(reference, keyPath: keyPath, mutation, try newMembers(members))
  }

  static func jsonPatch(_ text: String, _ patch: String) throws -> Self {
    .jsonPatch(try ref(text), try JSONPatch(json(patch)))
  }

  private static func parts(of place: String) throws -> (Reference, String) {
    let parts = place.split(separator: ".", maxSplits: 1)
    return (try ref(String(parts[0])), String(parts[1]))
  }

  /// The members of a JSON array; objects with an `@ref` are made in place.
  private static func newMembers(_ text: String) throws -> [NewMember] {
    try (json(text).elements ?? []).map { element in
      guard case .object(let values) = element, case .string(let name)? = values["@ref"] else { return .value(element) }
      return .object(try ref(name), values)
    }
  }
}

extension Fixture {
  /// Returns a commit's changes of keys, a line each: `List/1.items insertion [0, 2] + Item/1 Item/2`, with `silent` at
  /// the end if observers are not notified; brackets as `willChange` and `didChange`.
  func changes(_ commit: Commit) throws -> [String] {
    commit.steps.flatMap { step in
      switch step.kind {
      case .willChange(let object, let key): ["\(name(object, key)) willChange"]
      case .didChange(let object, let key): ["\(name(object, key)) didChange"]
      case .change(let changes): changes.map(line)
      }
    }
  }

  private func line(_ change: Commit.KeyChange) -> String {
    var words = [name(change.object, change.key), change.collection?.kind.rawValue ?? "setting"]
    if let collection = change.collection {
      if let indexes = collection.indexes { words.append("\(indexes)") }
      if !collection.removed.isEmpty { words += ["-"] + collection.removed.map(Self.word) }
      if !collection.inserted.isEmpty { words += ["+"] + collection.inserted.map(Self.word) }
    }
    if change.isSilent { words.append("silent") }
    return words.joined(separator: " ")
  }

  private func name(_ object: Reference, _ key: Int) -> String {
    "\(object).\(model.schema.entity(named: object.entity)?.keys[key].name ?? "?")"
  }

  private static func word(_ value: Value) -> String {
    if case .reference(let reference) = value { return reference.text }
    return value.json
  }
}
