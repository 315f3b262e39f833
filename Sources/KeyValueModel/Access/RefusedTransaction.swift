/// A transaction that is refused, applied to a copy of the state as far as its values are valid.
///
/// The rules take precedence over conditions and over invalid values (the specification, section 11). They are
/// therefore evaluated for everything that the transaction would have created and changed, even if it cannot be
/// applied.
struct RefusedTransaction: ~Copyable {
  private var writer: ObjectWriter

  /// Creates a copy of the model's state to which no operation has been applied yet. `viewer` determines what the
  /// writer may read.
  init(in model: Model, _ limits: TransactionLimits, for viewer: Viewer) {
    var copy = model.state
    writer = ObjectWriter(
      editor: StateEditor(taking: &copy, revision: model.revision + 1, milliseconds: 0, limits: limits))
    writer.editor.viewer = viewer
  }

  /// The state after the operations applied so far.
  var present: ModelState { writer.editor.state }

  /// The keys that the last operation changed through their inverses.
  var farChanges: [ObjectKey] { writer.editor.farChanges }

  /// False once the operations have taken more work than a transaction may take.
  var isWithinBudget: Bool { writer.editor.budget.isKept }

  /// Applies the valid part of an operation. `inquiry` determines the keys that the writer may not read or set.
  mutating func apply(_ operation: Operation, _ preparation: Preparation, asking inquiry: borrowing WriteInquiry) {
    writer.editor.beginOperation()
    writer.keysLeftAlone = inquiry.keysLeftAlone(by: operation, in: writer.editor.state)
    writer.closedKeys = inquiry.closedKeys(to: operation, in: writer.editor.state)
    writer.isChecked = if case .checked = preparation { true } else { false }
    switch operation {
    case .create(let reference, let body): make(reference, body)
    case .put(let reference, let body): put(reference, body)
    case .set(let reference, let keyPath, let value):
      guard let place = try? writer.place(reference, keyPath) else { return }
      try? assign(value, to: place.owner, key: place.key)
    case .patch(let reference, let body):
      for (name, value) in body.members {
        if let key = present.record(reference)?.entity.indexOfKey(name), value.elements != nil {
          try? assign(value, to: reference, key: key)
        } else {
          try? writer.apply([name: value], to: reference)
        }
      }
    case .jsonPatch(let reference, let patch):
      let prepared: PreparedPatch? = if case .patched(let prepared) = preparation { prepared } else { nil }
      try? writer.apply(patch, prepared, to: reference)
    case .insert(let reference, let keyPath, let members, _):
      edit(reference, keyPath, members) { writer, place, values in
        try writer.insert(values.filter { !$0.isMember(of: place) }, at: nil, into: place)
      }
    case .replace(let reference, let keyPath, let indexes, let members):
      edit(reference, keyPath, members) { writer, place, values in
        try writer.remove(at: Array(Set(indexes.filter(place.list.indices.contains))), from: place)
        let place = try writer.collection(reference, keyPath)
        try writer.insert(values.filter { !$0.isMember(of: place) }, at: nil, into: place)
      }
    case .mutateSet(let reference, let keyPath, let mutation, let members):
      edit(reference, keyPath, members) { writer, place, values in try writer.mutate(place, mutation, values) }
    case .removeIndexes(let reference, let keyPath, let indexes):
      edit(reference, keyPath, []) { writer, place, _ in
        try writer.remove(at: Array(Set(indexes.filter(place.list.indices.contains))), from: place)
      }
    case .removeMembers(let reference, let keyPath, let members):
      edit(reference, keyPath, []) { writer, place, _ in
        try writer.remove(members.filter { (try? writer.removable($0, place)) != nil }, from: place)
      }
    case .delete(let reference): try? writer.editor.delete(reference)
    case .willChange, .didChange, .require, .lifetime: break
    }
  }

  /// Creates an object, replacing an existing one.
  private mutating func make(_ reference: Reference, _ body: JSONObject) {
    guard let entity = present.schema.entity(of: reference) else { return }
    if present.record(reference) != nil { writer.editor.write(reference, nil) }
    writer.editor.make(reference, entity)
    for (index, key) in entity.keys.enumerated() {
      guard let storage = key.storage else { continue }
      if let value = body[key.name], (try? assign(value, to: reference, key: index)) != nil { continue }
      guard present.record(reference)?.values[storage].isEmptyOrNull == true else { continue }
      try? writer.assign(key.defaultValue, to: reference, key: index)
    }
  }

  private mutating func put(_ reference: Reference, _ body: JSONObject) {
    guard let record = present.record(reference) else { return make(reference, body) }
    var given: [Int: Value] = [:]
    for (index, key) in record.entity.keys.enumerated() { given[index] = body[key.name] }
    for (index, key) in record.entity.keys.enumerated() {
      guard let storage = key.storage else { continue }
      if let value = given[index] {
        try? assign(value, to: reference, key: index)
      } else if !writer.keysLeftAlone.contains(index) {
        try? writer.reset(reference, key: index, from: record.values[storage], given)
      }
    }
  }

  /// Sets a key. Of a collection's members, only those that it can hold are kept.
  private mutating func assign(_ value: Value, to reference: Reference, key index: Int) throws(ModelError) {
    guard let key = present.record(reference)?.entity.keys[index], case .toMany(let toMany) = key.kind,
      let elements = value.elements
    else { return try writer.assign(value, to: reference, key: index) }
    var seen: Set<Value> = []
    let members = elements.filter { element in
      guard let member = try? writer.member(element, of: key, toMany, reference) else { return false }
      return seen.insert(member).inserted
    }
    try writer.assign(.array(members), to: reference, key: index)
  }

  /// Calls `change` with the collection that a key path names and the members that the collection can hold. Creates the
  /// objects that the operation declares in place.
  private mutating func edit(
    _ reference: Reference, _ keyPath: String, _ members: [NewMember],
    _ change: (inout ObjectWriter, ObjectWriter.CollectionPlace, [NewMember]) throws -> Void
  ) {
    guard let place = try? writer.collection(reference, keyPath) else { return }
    var values: [NewMember] = []
    var seen: Set<Value> = []
    for member in members {
      let value: Value
      switch member {
      case .value(let given): value = given
      case .object(let object, let body):
        make(object, body)
        value = .reference(object)
      }
      guard let member = try? writer.member(value, of: place.key, place.toMany, place.owner),
        seen.insert(member).inserted
      else { continue }
      values.append(.value(member))
    }
    guard let place = try? writer.collection(reference, keyPath) else { return }
    try? change(&writer, place, values)
  }
}

extension NewMember {
  fileprivate func isMember(of place: ObjectWriter.CollectionPlace) -> Bool {
    if case .value(let value) = self { place.list.contains(value) } else { false }
  }
}
