internal import OrderedCollections

/// Creating, setting, patching.
extension TransactionApplication {
  mutating func create(_ reference: Reference, _ values: JSONObject) throws(ModelError) {
    let entity = try state.schema.requireEntity(reference.entity)
    guard state.record(reference) == nil else {
      throw ModelError(.alreadyExists, "there is an object \(reference) already", object: reference)
    }
    let given = try members(values, of: entity, reference)
    let nulls = [Value](repeating: .null, count: entity.storageCount)
    write(reference, ObjectRecord(entity: entity, revision: revision, createdAt: revision, values: nulls))
    for index in entity.keys.indices {
      guard let storage = entity.keys[index].storage else { continue }
      if let value = given[index] {
        try assign(value, to: reference, key: index)
      } else if state.record(reference)?.values[storage].isNull == true {
        // Otherwise it was set as the far side of a key of the body that names the object itself.
        try assign(entity.keys[index].defaultValue, to: reference, key: index)
      }
    }
  }

  mutating func put(_ reference: Reference, _ values: JSONObject) throws(ModelError) {
    guard let record = state.record(reference) else { return try create(reference, values) }
    let entity = record.entity
    let given = try members(values, of: entity, reference)
    for index in entity.keys.indices {
      guard let storage = entity.keys[index].storage else { continue }
      if let value = given[index] {
        try assign(value, to: reference, key: index)
      } else if record.values[storage] != entity.keys[index].defaultValue,
        state.record(reference)?.values[storage] == record.values[storage]
      {
        // The second condition spares what was set as the far side of a key of the body.
        try assign(entity.keys[index].defaultValue, to: reference, key: index)
      }
    }
  }

  /// Sets value for key path: the objects on the way must be there.
  mutating func set(_ reference: Reference, _ keyPath: String, _ value: Value) throws(ModelError) {
    let record = try state.requireRecord(reference)
    let path: ModelKeyPath
    do throws(ModelError) {
      path = try state.schema.resolve(keyPath, from: record.entity)
    } catch {
      throw error.code == .notACollection ? Self.writingThroughOperator(keyPath, reference) : error.at(reference)
    }
    var target = reference
    if path.keys.count > 1 {
      guard case .reference(let owner) = state.value(of: reference, at: path.keys.dropLast()) else {
        throw ModelError(
          .nullInKeyPath, "'\(keyPath)' leads through a null", object: reference, keyPath: keyPath)
      }
      target = owner
    }
    guard let index = path.keys.last else { return }
    do throws(ModelError) {
      try assign(value, to: target, key: index)
    } catch {
      throw ModelError(error.code, error.detail, object: reference, keyPath: keyPath)
    }
  }

  private static func writingThroughOperator(_ keyPath: String, _ reference: Reference) -> ModelError {
    ModelError(
      .malformedKeyPath, "'\(keyPath)' has a collection operator and cannot be written", object: reference,
      keyPath: keyPath)
  }

  mutating func apply(_ patch: JSONObject, to reference: Reference) throws(ModelError) {
    let record = try state.requireRecord(reference)
    for (index, value) in try orderedMembers(patch, of: record.entity, reference) {
      var merged = value
      if case .attribute(let attribute) = record.entity.keys[index].kind, attribute.type == .json,
        let current = state.record(reference)
      {
        merged = MergePatch.merging(value, into: state.value(of: current, reference, key: index))
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
    for (index, value) in try orderedMembers(body, of: entity, reference) { values[index] = value }
    return values
  }

  private func orderedMembers(
    _ body: JSONObject, of entity: Entity, _ reference: Reference
  ) throws(ModelError) -> [(Int, Value)] {
    var values: [(Int, Value)] = []
    for name in body.members.keys {
      let value = body[name] ?? .null
      if name == "@revision" { continue }
      if name == "@ref" {
        guard value == .string(reference.text) else {
          throw ModelError(.invalidValue, "@ref is \(value.json), not \(reference)", object: reference, keyPath: name)
        }
        continue
      }
      guard let index = entity.indexOfKey(name) else {
        throw ModelError(.undefinedKey, "\(entity.name) has no key '\(name)'", object: reference, keyPath: name)
      }
      guard entity.keys[index].storage != nil else {
        throw ModelError(.readOnlyKey, "'\(name)' is computed", object: reference, keyPath: name)
      }
      values.append((index, value))
    }
    return values
  }

  // MARK: Assigning

  /// Checks a value and sets a key to it, whatever the key is.
  mutating func assign(_ value: Value, to reference: Reference, key index: Int) throws(ModelError) {
    guard let entity = state.record(reference)?.entity else { return }
    let key = entity.keys[index]
    if value.isNull, !key.isOptional {
      throw ModelError(.nullNotAllowed, "'\(key.name)' must have a value", object: reference, keyPath: key.name)
    }
    switch key.kind {
    case .computed:
      throw ModelError(.readOnlyKey, "'\(key.name)' is computed", object: reference, keyPath: key.name)
    case .attribute(let attribute):
      var accepted = value
      if !value.isNull {
        do throws(Attribute.Refusal) {
          accepted = try attribute.accepting(value)
        } catch {
          throw ModelError(
            .invalidValue, "'\(key.name)' \(error.reason)", object: reference, keyPath: key.name)
        }
      }
      store(accepted, in: reference, key: index)
    case .toOne(let toOne):
      try connect(reference, key: index, toOne, to: try target(of: value, key, toOne, reference))
    }
  }
}

extension Key {
  /// What a create fills in: the default, or null.
  package var defaultValue: Value {
    if case .attribute(let attribute) = kind, let value = attribute.defaultValue { return value }
    return .null
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
