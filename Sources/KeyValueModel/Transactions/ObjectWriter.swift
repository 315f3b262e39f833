/// Applies the operations of a transaction to objects: checks them, and writes the result with a `StateEditor`.
struct ObjectWriter: ~Copyable {
  var editor: StateEditor
  /// True if the values of the current operation are known to be valid for their attributes.
  var isChecked = false
  /// The keys that a `put` does not reset to their defaults and that a JSON Patch does not see, because the writer may
  /// not read them.
  var keysLeftAlone: Set<Int> = []
  /// The keys that a JSON Patch of the whole document must not set.
  var closedKeys: Set<Int> = []

  /// Creates an object. `inverse` is a key that may be null until it is set from its other side.
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
        // Otherwise a key of the body that names the object itself has set it from the far side.
        try assign(entity.keys[index].defaultValue, to: reference, key: index)
      }
    }
  }

  func requireAbsent(_ reference: Reference) throws(ModelError) {
    guard editor.state.record(reference) == nil else {
      throw ModelError(.alreadyExists, "object \(reference) already exists", object: reference)
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

  /// Resets a key that a body does not name to its default, except for what the body sets from the far side.
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

  /// Sets the value for a key path. The objects on the path must exist.
  mutating func set(_ reference: Reference, _ keyPath: String, _ value: Value) throws(ModelError) {
    let (target, index, record) = try place(reference, keyPath)
    guard let record else { return }
    do throws(ModelError) {
      try assign(value, to: target, record, key: index)
    } catch {
      throw ModelError(error.code, error.detail, object: reference, keyPath: keyPath)
    }
  }

  /// Returns the object that owns the last key of a key path, the index of that key, and the object's current record.
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
        // Null removes a member (RFC 7396 §2); a collection is emptied instead.
        merged = .array([])
      }
      try assign(merged, to: reference, key: index)
    }
  }

  // MARK: Bodies

  /// Returns a body's members by key index. `@ref` must be the object's own; it and `@revision` are ignored.
  private func members(
    _ body: JSONObject, of entity: Entity, _ reference: Reference
  ) throws(ModelError) -> [Int: Value] {
    var values: [Int: Value] = [:]
    for (index, value) in try entity.settings(body, of: reference) { values[index] = value }
    return values
  }

  // MARK: Assigning

  /// Checks a value and sets a key of any kind to it.
  mutating func assign(_ value: Value, to reference: Reference, key index: Int) throws(ModelError) {
    guard let record = editor.state.record(reference) else { return }
    try assign(value, to: reference, record, key: index)
  }

  /// Sets a key of an object whose record the caller has looked up and that has not changed since.
  private mutating func assign(
    _ value: Value, to reference: Reference, _ record: ObjectRecord, key index: Int
  ) throws(ModelError) {
    let column = record.entity.layout.columns[index]
    if value.isNull, !column.isOptional {
      let name = record.entity.keys[index].name
      throw ModelError(.nullNotAllowed, "'\(name)' must have a value", object: reference, keyPath: name)
    }
    // The common attributes are set without copying the key, which has many reference-counted parts.
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

  /// Returns a value in the form of its attribute's type, after checking it unless that was done before.
  private func accept(_ value: Value, by attribute: Attribute) throws(Attribute.Refusal) -> Value {
    guard isChecked else { return try attribute.accepting(value) }
    return attribute.type == .json ? value : try attribute.converting(value)
  }

  /// Returns the checked members of a collection that is set as a whole.
  private func members(
    _ value: Value, of key: Key, _ toMany: ToMany, _ reference: Reference
  ) throws(ModelError) -> [Value] {
    guard let elements = value.elements else {
      throw ModelError(
        .invalidValue, "'\(key.name)' must be an array, not \(value.kind)", object: reference, keyPath: key.name)
    }
    var members: [Value] = []
    var seen: Set<Value> = []
    for element in elements {
      let member = try member(element, of: key, toMany, reference)
      if seen.insert(member).inserted {
        members.append(member)
      } else if toMany.isOrdered {
        throw ModelError(
          .invalidValue, "\(member.json) occurs twice in '\(key.name)'; members must be unique", object: reference,
          keyPath: key.name)
      }
    }
    return members
  }

  // MARK: JSON Patch (RFC 6902)

  /// Applies a JSON Patch to the object as `GET` returns it. Each key that the patch names is set to its resulting
  /// value.
  ///
  /// `prepared` is the result if it was computed before; it is used only if the object is still the same.
  mutating func apply(
    _ patch: JSONPatch, _ prepared: PreparedPatch?, to reference: Reference
  ) throws(ModelError) {
    let record = try editor.state.requireRecord(reference)
    let patched: ObjectPatch
    if let prepared, prepared.holds(for: record) {
      // These steps were within the limit, and not taken by the writer.
      patched = try prepared.result.get()
    } else {
      patched = try ObjectPatch(
        patch, of: reference, record, in: editor.state, budget: editor.budget,
        without: keysLeftAlone, closed: closedKeys)
      editor.budget.spend(patched.steps)
    }
    isChecked = patched.isChecked
    for setting in patched.settings {
      if isChecked, let size = setting.size, let record = editor.state.record(reference) {
        editor.store(setting.value, in: reference, record, key: setting.key, size: size)
      } else {
        try assign(setting.value, to: reference, key: setting.key)
      }
    }
  }

  // MARK: Collections: by index set, as sets, and as a whole

  /// A collection of an object, resolved from a key path.
  struct CollectionPlace {
    let owner: Reference
    let index: Int
    let key: Key
    let toMany: ToMany
    var list: MemberList
    /// The path as it was written, from the object that the request named, for errors.
    let keyPath: String
    let root: Reference

    func error(_ code: ModelError.Code, _ detail: String) -> ModelError {
      ModelError(code, detail, object: root, keyPath: keyPath)
    }
  }

  /// Returns the collection that a key path names. The objects on the path must exist.
  func collection(_ reference: Reference, _ keyPath: String) throws(ModelError) -> CollectionPlace {
    let (owner, index, record) = try place(reference, keyPath)
    guard let record, case .toMany(let toMany) = record.entity.keys[index].kind,
      case .members(let list) = editor.state.value(of: record, owner, key: index)
    else {
      throw ModelError(.notACollection, "'\(keyPath)' is not a collection", object: reference, keyPath: keyPath)
    }
    return CollectionPlace(
      owner: owner, index: index, key: record.entity.keys[index], toMany: toMany, list: list, keyPath: keyPath,
      root: reference)
  }

  // MARK: Operations

  mutating func insert(
    _ members: [NewMember], at indexes: [Int]?, into place: CollectionPlace
  ) throws(ModelError) {
    let values = try resolve(members, for: place)
    let place = refreshed(place, without: members)
    var list = place.list
    var inserted: [Value] = []
    if let indexes {
      for (index, value) in try pairs(indexes, values, place) {
        guard index <= list.count else { throw Self.outOfRange(index, list.count, place) }
        guard list.insert(value, at: index) else { throw Self.isMember(value, place) }
        inserted.append(value)
      }
    } else {
      for value in values {
        if list.insert(value) != nil {
          inserted.append(value)
        } else if place.toMany.isOrdered {
          throw Self.isMember(value, place)
        }
      }
    }
    try change(place, to: list, removed: [], inserted: inserted)
  }

  mutating func remove(at indexes: [Int], from place: CollectionPlace) throws(ModelError) {
    let ordered = try checked(indexes, in: place)
    var list = place.list
    let removed = ordered.map { place.list[$0] }
    for index in ordered.reversed() { _ = list.remove(at: index) }
    try change(place, to: list, removed: removed, inserted: [])
  }

  /// Removes members. Values that are not members are ignored; a reference need not name an existing object.
  mutating func remove(_ members: [Value], from place: CollectionPlace) throws(ModelError) {
    var list = place.list
    var removed: [Value] = []
    for member in members {
      let value = try removable(member, place)
      if let index = list.index(of: value) { removed.append(list.remove(at: index)) }
    }
    try change(place, to: list, removed: removed, inserted: [])
  }

  mutating func replace(
    at indexes: [Int], with members: [NewMember], in place: CollectionPlace
  ) throws(ModelError) {
    let values = try resolve(members, for: place)
    let place = refreshed(place, without: members)
    _ = try checked(indexes, in: place)
    let pairs = try pairs(indexes, values, place)
    let removed = pairs.map { place.list[$0.index] }
    var list = place.list
    for pair in pairs.reversed() { _ = list.remove(at: pair.index) }
    for pair in pairs {
      guard list.insert(pair.value, at: pair.index) else { throw Self.isMember(pair.value, place) }
    }
    try change(
      place, to: list, removed: removed, inserted: pairs.map(\.value),
      as: .replacement(indexes: pairs.map(\.index)))
  }

  mutating func mutate(
    _ place: CollectionPlace, _ mutation: SetMutation, _ members: [NewMember]
  ) throws(ModelError) {
    try checkMutation(mutation, members, place)
    let values = MemberList(try resolve(members, for: place), isOrdered: false)
    let place = refreshed(place, without: members)
    if mutation == .intersect || mutation == .set {
      editor.budget.spend(place.list.count)
      try editor.budget.check()
    }
    let gone: [Value]
    let come: [Value]
    switch mutation {
    case .union: (gone, come) = ([], values.filter { !place.list.contains($0) })
    case .minus: (gone, come) = (values.compactMap { place.list.index(of: $0).map { place.list[$0] } }, [])
    case .intersect: (gone, come) = (place.list.filter { !values.contains($0) }, [])
    case .set: (gone, come) = (place.list.filter { !values.contains($0) }, values.filter { !place.list.contains($0) })
    }
    var list = place.list
    for member in gone { _ = list.remove(member) }
    for member in come { _ = list.insert(member) }
    try change(
      place, to: list, removed: gone, inserted: come, as: mutation == .set ? .replacement(indexes: nil) : .difference)
  }

  /// Sets a collection as a whole to members that have been checked.
  private mutating func assign(
    _ members: [Value], to owner: Reference, key index: Int, _ toMany: ToMany
  ) throws(ModelError) {
    guard case .members(let old) = editor.state.value(of: owner, key: index) else { return }
    editor.budget.spend(old.count + members.count)
    try editor.budget.check()
    let list = MemberList(members, isOrdered: toMany.isOrdered)
    let removed = old.filter { !list.contains($0) }
    let inserted = list.filter { !old.contains($0) }
    try replace(list, in: owner, key: index, toMany, removed: removed, inserted: inserted, as: .setting)
  }

  // MARK: Storing

  private mutating func change(
    _ place: CollectionPlace, to list: MemberList, removed: [Value], inserted: [Value],
    as kind: StepChanges.CollectionKind = .difference
  ) throws(ModelError) {
    // An operation that does not change the members has no effect.
    guard !removed.isEmpty || !inserted.isEmpty else { return }
    try replace(
      list, in: place.owner, key: place.index, place.toMany, removed: removed, inserted: inserted, as: kind)
  }

  /// Stores the members, and updates the far sides if there is an inverse.
  private mutating func replace(
    _ list: MemberList, in owner: Reference, key index: Int, _ toMany: ToMany, removed: [Value], inserted: [Value],
    as kind: StepChanges.CollectionKind
  ) throws(ModelError) {
    editor.store(list, in: owner, key: index, removed: removed, inserted: inserted, as: kind)
    guard let inverse = toMany.inverseIndex else { return }
    let remaining = removed.isEmpty || inserted.isEmpty ? [] : Set(removed).intersection(inserted)
    for case .reference(let member) in removed where !remaining.contains(.reference(member)) {
      try editor.release(owner, from: member, key: inverse)
    }
    for case .reference(let member) in inserted where !remaining.contains(.reference(member)) {
      try editor.attach(owner, to: member, key: inverse, reverse: index)
    }
  }

  // MARK: Index sets

  /// Returns the indexes with their members, ascending.
  private func pairs(
    _ indexes: [Int], _ values: [Value], _ place: CollectionPlace
  ) throws(ModelError) -> [(index: Int, value: Value)] {
    try checkOrdered(place)
    guard indexes.count == values.count else {
      throw place.error(.invalidValue, "there are \(indexes.count) indexes for \(values.count) members")
    }
    try checkOnce(indexes, place)
    return zip(indexes, values).sorted { $0.0 < $1.0 }.map { (index: $0.0, value: $0.1) }
  }

  /// Returns indexes of existing members, ascending.
  private func checked(_ indexes: [Int], in place: CollectionPlace) throws(ModelError) -> [Int] {
    try checkOrdered(place)
    try checkOnce(indexes, place)
    for index in indexes where index >= place.list.count { throw Self.outOfRange(index, place.list.count - 1, place) }
    return indexes.sorted()
  }

  private func checkOrdered(_ place: CollectionPlace) throws(ModelError) {
    guard !place.toMany.isOrdered else { return }
    throw place.error(.indexOutOfRange, "'\(place.key.name)' is not ordered and has no indexes")
  }

  private func checkOnce(_ indexes: [Int], _ place: CollectionPlace) throws(ModelError) {
    var seen: Set<Int> = []
    for index in indexes {
      guard index >= 0 else { throw place.error(.indexOutOfRange, "index \(index) is negative") }
      guard seen.insert(index).inserted else {
        throw place.error(.indexOutOfRange, "index \(index) is given twice")
      }
    }
  }

  private static func outOfRange(_ index: Int, _ last: Int, _ place: CollectionPlace) -> ModelError {
    let range = last < 0 ? "it has no members" : "indexes go from 0 to \(last)"
    return place.error(.indexOutOfRange, "index \(index) is out of range for '\(place.key.name)': \(range)")
  }

  private static func isMember(_ value: Value, _ place: CollectionPlace) -> ModelError {
    place.error(.invalidValue, "\(value.json) is already a member of '\(place.key.name)'; members must be unique")
  }

  // MARK: New members, and collections after members were made in place

  /// Returns the members as values. Creates the objects to be made in place, without the keys that the inverse will
  /// set.
  private mutating func resolve(_ members: [NewMember], for place: CollectionPlace) throws(ModelError) -> [Value] {
    var values: [Value] = []
    for member in members {
      switch member {
      case .value(let value): values.append(try self.member(value, of: place.key, place.toMany, place.owner))
      case .object(let reference, let body):
        guard let destination = place.toMany.destination else {
          throw place.error(.invalidValue, "'\(place.key.name)' holds values, not objects")
        }
        guard editor.state.schema.entity(of: reference)?.isKind(of: destination) == true else {
          throw place.error(.wrongEntity, "'\(place.key.name)' must refer to a \(destination); \(reference) is not one")
        }
        try create(reference, body, heldBy: place.toMany.inverseIndex)
        values.append(.reference(reference))
      }
    }
    return values
  }

  /// Returns a checked member: the reference of an existing object, or a value in the form of its type.
  func member(_ value: Value, of key: Key, _ toMany: ToMany, _ owner: Reference) throws(ModelError) -> Value {
    guard !value.isNull else {
      throw ModelError(.nullNotAllowed, "'\(key.name)' cannot hold null", object: owner, keyPath: key.name)
    }
    switch toMany.member {
    case .object(let destination):
      return try editor.target(of: value, key, destination: destination, owner).map(Value.reference) ?? .null
    case .value(let attribute):
      do throws(Attribute.Refusal) {
        let member = try accept(value, by: attribute)
        // Members are unique in their written form, or the collection could not be sent back.
        return attribute.type == .json ? member.asWritten : member
      } catch {
        throw ModelError(.invalidValue, "a member of '\(key.name)' \(error.reason)", object: owner, keyPath: key.name)
      }
    }
  }

  func removable(_ value: Value, _ place: CollectionPlace) throws(ModelError) -> Value {
    guard place.toMany.destination != nil else {
      return try member(value, of: place.key, place.toMany, place.owner)
    }
    switch value {
    case .reference: return value
    case .string(let text):
      if let reference = Reference(text) { return .reference(reference) }
      throw place.error(.invalidValue, "'\(text)' is not a reference")
    default: throw place.error(.invalidValue, "'\(place.key.name)' has references as members, not \(value.kind)")
    }
  }

  private func checkMutation(
    _ mutation: SetMutation, _ members: [NewMember], _ place: CollectionPlace
  ) throws(ModelError) {
    guard !place.toMany.isOrdered else {
      throw place.error(.notACollection, "'\(place.key.name)' is ordered and takes no set operations")
    }
    guard mutation == .minus || mutation == .intersect else { return }
    for case .object(let reference, _) in members {
      throw place.error(
        .invalidValue, "\(reference) cannot be created by '\(mutation.rawValue)', which adds no members")
    }
  }

  /// Returns the collection as it is after members were made in place, whose bodies may have removed others. New
  /// objects that inserted themselves are left out: the operation decides their places.
  private func refreshed(_ place: CollectionPlace, without members: [NewMember]) -> CollectionPlace {
    guard case .members(var list) = editor.state.value(of: place.owner, key: place.index) else { return place }
    for case .object(let reference, _) in members { list.remove(.reference(reference)) }
    var place = place
    place.list = list
    return place
  }
}

extension Entity {
  /// Returns the key on the other side of a relationship, if objects of this entity can be on both sides; nil
  /// otherwise.
  fileprivate func farSide(of key: Int) -> Int? {
    guard let relationship = keys[key].relationship, let inverse = relationship.inverse,
      isKind(of: relationship.destination)
    else { return nil }
    return indexOfKey(inverse)
  }
}

extension Value {
  /// Returns true if the value of a relationship contains an object.
  fileprivate func names(_ reference: Reference) -> Bool {
    switch self {
    case .string(let text): text == reference.text
    case .reference(let other): other == reference
    default: elements?.contains { $0.names(reference) } ?? false
    }
  }

  /// Returns true if a relationship leads to that object and to no other.
  fileprivate func isOnly(_ reference: Reference) -> Bool {
    switch self {
    case .reference(let other): other == reference
    case .members(let list): list.count == 1 && list.contains(.reference(reference))
    default: false
    }
  }
}
