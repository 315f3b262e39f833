/// Carries out the operations of a transaction on objects: checks what is asked, and writes it with a `StateEditor`.
struct ObjectWriter: ~Copyable {
  var editor: StateEditor
  /// Whether the values of the operation under way were found to be such as their attributes take.
  var isChecked = false
  /// The keys that a `put` does not give their defaults and that a JSON patch does not know, because who writes may not
  /// read them.
  var keysLeftAlone: Set<Int> = []
  /// The keys that a JSON patch of the whole document may not set.
  var closedKeys: Set<Int> = []

  /// Makes an object. `heldBy` is a key that is about to be set from its other side, and
  /// that may be null until then.
  mutating func create(
    _ reference: Reference, _ values: JSONObject, heldBy inverse: Int? = nil
  ) throws(ModelError) {
    let entity = try editor.state.schema.requireEntity(of: reference)
    try requireAbsent(reference)
    let given = try members(values, of: entity, reference)
    editor.make(reference, entity)
    for index in entity.keys.indices {
      guard let storage = entity.keys[index].storage else { continue }
      if let value = given[index] {
        try assign(value, to: reference, key: index)
      } else if index != inverse, editor.state.record(reference)?.values[storage].isEmptyOrNull == true {
        // Otherwise it was set as the far side of a key of the body that names the object itself.
        try assign(entity.keys[index].defaultValue, to: reference, key: index)
      }
    }
  }

  func requireAbsent(_ reference: Reference) throws(ModelError) {
    guard editor.state.record(reference) == nil else {
      throw ModelError(.alreadyExists, "there is an object \(reference) already", object: reference)
    }
  }

  mutating func put(_ reference: Reference, _ values: JSONObject) throws(ModelError) {
    guard let record = editor.state.record(reference) else { return try create(reference, values) }
    let entity = record.entity
    let given = try members(values, of: entity, reference)
    for index in entity.keys.indices {
      guard let storage = entity.keys[index].storage else { continue }
      if let value = given[index] {
        try assign(value, to: reference, key: index)
      } else if !keysLeftAlone.contains(index) {
        try reset(reference, key: index, from: record.values[storage], given)
      }
    }
  }

  /// Takes away what a key has that a body does not name, but for what the body says of it from the far side.
  mutating func reset(
    _ reference: Reference, key index: Int, from old: Value, _ given: [Int: Value]
  ) throws(ModelError) {
    guard let record = editor.state.record(reference), let storage = record.entity.keys[index].storage else { return }
    let (key, present) = (record.entity.keys[index], record.values[storage])
    if let farSide = record.entity.farSide(of: index), given[farSide]?.names(reference) == true {
      guard !present.isOnly(reference) else { return }
      let value = Value.string(reference.text)
      try assign(key.isToMany ? .array([value]) : value, to: reference, key: index)
    } else if old != key.defaultValue, present == old {
      try assign(key.defaultValue, to: reference, key: index)
    }
  }

  /// Sets value for key path: the objects on the way must be there.
  mutating func set(_ reference: Reference, _ keyPath: String, _ value: Value) throws(ModelError) {
    let (target, index, record) = try place(reference, keyPath)
    guard let record else { return }
    do throws(ModelError) {
      try assign(value, to: target, record, key: index)
    } catch {
      throw ModelError(error.code, error.detail, object: reference, keyPath: keyPath)
    }
  }

  /// The object that a key path leads to, which of its keys comes last, and the object as it stands.
  func place(
    _ reference: Reference, _ keyPath: String
  ) throws(ModelError) -> (owner: Reference, key: Int, record: ObjectRecord?) {
    let record = try editor.state.requireRecord(reference)
    if !keyPath.utf8.contains(UInt8(ascii: ".")), let index = record.entity.indexOfKey(keyPath) {
      return (reference, index, record)
    }
    let path: ModelKeyPath
    do throws(ModelError) {
      path = try editor.state.schema.resolve(keyPath, from: record.entity)
    } catch {
      throw error.code == .notACollection ? Self.writingThroughOperator(keyPath, reference) : error.at(reference)
    }
    guard path.operation == nil else { throw Self.writingThroughOperator(keyPath, reference) }
    guard let index = path.keys.last, path.keys.count > 1 else { return (reference, path.keys.last ?? 0, record) }
    guard path.unobservable == nil else {
      throw ModelError(
        .notACollection, "'\(keyPath)' leads through a collection and cannot be written", object: reference,
        keyPath: keyPath)
    }
    guard case .reference(let owner) = editor.state.value(of: reference, at: path.keys.dropLast()) else {
      throw ModelError(.nullInKeyPath, "'\(keyPath)' leads through a null", object: reference, keyPath: keyPath)
    }
    return (owner, index, editor.state.record(owner))
  }

  private static func writingThroughOperator(_ keyPath: String, _ reference: Reference) -> ModelError {
    ModelError(
      .malformedKeyPath, "'\(keyPath)' has a collection operator and cannot be written", object: reference,
      keyPath: keyPath)
  }

  mutating func apply(_ patch: JSONObject, to reference: Reference) throws(ModelError) {
    let record = try editor.state.requireRecord(reference)
    for (index, value) in try record.entity.settings(patch, of: reference) {
      var merged = value
      if case .attribute(let attribute) = record.entity.keys[index].kind, attribute.type == .json,
        let current = editor.state.record(reference)
      {
        var steps = 0
        merged = MergePatch.merging(
          value, into: editor.state.value(of: current, reference, key: index), steps: &steps)
        editor.budget.spend(steps)
      } else if value.isNull, record.entity.keys[index].isToMany {
        // Null takes away what is there (RFC 7396 §2), and a collection without its members is empty.
        merged = .array([])
      }
      try assign(merged, to: reference, key: index)
    }
  }

  // MARK: Bodies

  /// A body's members by key index. `@ref` must be the right one; it and `@revision` are ignored.
  private func members(
    _ body: JSONObject, of entity: Entity, _ reference: Reference
  ) throws(ModelError) -> [Int: Value] {
    var values: [Int: Value] = [:]
    for (index, value) in try entity.settings(body, of: reference) { values[index] = value }
    return values
  }

  // MARK: Assigning

  /// Checks a value and sets a key to it, whatever the key is.
  mutating func assign(_ value: Value, to reference: Reference, key index: Int) throws(ModelError) {
    guard let record = editor.state.record(reference) else { return }
    try assign(value, to: reference, record, key: index)
  }

  /// The same for an object that the caller has looked up and that has not changed since.
  mutating func assign(
    _ value: Value, to reference: Reference, _ record: ObjectRecord, key index: Int
  ) throws(ModelError) {
    let column = record.entity.layout.columns[index]
    if value.isNull, !column.isOptional {
      let name = record.entity.keys[index].name
      throw ModelError(.nullNotAllowed, "'\(name)' must have a value", object: reference, keyPath: name)
    }
    // What most attributes are is handled without a copy of the key, which has much in it that is counted.
    if let plain = column.plainForm(of: value) { return editor.store(plain, in: reference, record, key: index) }
    let key = record.entity.keys[index]
    switch key.kind {
    case .computed:
      throw ModelError(.readOnlyKey, "'\(key.name)' is computed", object: reference, keyPath: key.name)
    case .attribute(let attribute):
      var accepted = value
      if !value.isNull {
        do throws(Attribute.Refusal) {
          accepted = try accept(value, by: attribute)
        } catch {
          throw ModelError(
            .invalidValue, "'\(key.name)' \(error.reason)", object: reference, keyPath: key.name)
        }
      }
      editor.store(accepted, in: reference, record, key: index)
    case .toOne(let toOne):
      let target = try editor.target(of: value, key, destination: toOne.destination, reference)
      try editor.connect(reference, key: index, toOne, to: target)
    case .toMany(let toMany):
      try assign(try members(value, of: key, toMany, reference), to: reference, key: index, toMany)
    }
  }

  /// A value in the form of its attribute's type, checked unless it was before.
  func accept(_ value: Value, by attribute: Attribute) throws(Attribute.Refusal) -> Value {
    guard isChecked else { return try attribute.accepting(value) }
    return attribute.type == .json ? value : try attribute.converting(value)
  }

  /// The checked members of a collection that is set as a whole.
  private func members(
    _ value: Value, of key: Key, _ toMany: ToMany, _ reference: Reference
  ) throws(ModelError) -> [Value] {
    guard let elements = value.elements else {
      throw ModelError(
        .invalidValue, "'\(key.name)' wants an array and is \(value.kind)", object: reference, keyPath: key.name)
    }
    var members: [Value] = []
    var seen: Set<Value> = []
    for element in elements {
      let member = try member(element, of: key, toMany, reference)
      if seen.insert(member).inserted {
        members.append(member)
      } else if toMany.isOrdered {
        throw ModelError(
          .invalidValue, "\(member.json) is twice in '\(key.name)'; members are unique", object: reference,
          keyPath: key.name)
      }
    }
    return members
  }
}

extension Entity {
  /// The key whose other side a key is, where objects of the entity can be on both.
  fileprivate func farSide(of key: Int) -> Int? {
    guard let relationship = keys[key].relationship, let inverse = relationship.inverse,
      isKind(of: relationship.destination)
    else { return nil }
    return indexOfKey(inverse)
  }
}

extension Value {
  /// Whether what a relationship is set to has an object in it.
  fileprivate func names(_ reference: Reference) -> Bool {
    switch self {
    case .string(let text): text == reference.text
    case .reference(let other): other == reference
    default: elements?.contains { $0.names(reference) } ?? false
    }
  }

  /// Whether a relationship leads to that object and to no other.
  fileprivate func isOnly(_ reference: Reference) -> Bool {
    switch self {
    case .reference(let other): other == reference
    case .members(let list): list.count == 1 && list.contains(.reference(reference))
    default: false
    }
  }
}

extension ModelError {
  /// The same mistake with the object that it is about.
  func at(_ reference: Reference) -> ModelError {
    var error = self
    error.object = error.object ?? reference.text
    return error
  }
}
