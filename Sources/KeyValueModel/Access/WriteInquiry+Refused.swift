/// What is asked about a transaction that cannot be applied: the rules come before conditions, and before what is wrong
/// with the values. Objects are taken as the operations have them, with those values that are right.
extension WriteInquiry {
  /// Asks whether the operations may make and change what they would.
  func ask(
    afterFailureOf operations: some Collection<Operation>, former: some ObjectReader, in schema: Schema
  ) throws(ModelError) {
    var intended = IntendedState(base: former, intents: [:])
    for (index, operation) in operations.enumerated() {
      do throws(ModelError) {
        try askCreations(by: operation, former, schema)
      } catch {
        var located = error
        located.operation = index
        throw located
      }
      note(operation, in: &intended, schema)
    }
    for (reference, index) in updated.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
      guard let record = intended.intents[reference], let old = former.record(reference) else { continue }
      guard access.permits(.update, reference, record, in: intended, before: (old, former)) else {
        throw Self.forbidden("update", reference, index)
      }
    }
  }

  // MARK: What it would make

  private func askCreations(
    by operation: Operation, _ former: some ObjectReader, _ schema: Schema
  ) throws(ModelError) {
    switch operation {
    case .create(let reference, let body): try askCreation(of: reference, body, former, schema)
    case .put(let reference, let body) where former.record(reference) == nil:
      try askCreation(of: reference, body, former, schema)
    case .insert(_, _, let members, _), .replace(_, _, _, let members), .mutateSet(_, _, _, let members):
      for case .object(let reference, let body) in members { try askCreation(of: reference, body, former, schema) }
    default: break
    }
  }

  private func askCreation(
    of reference: Reference, _ body: JSONObject, _ former: some ObjectReader, _ schema: Schema
  ) throws(ModelError) {
    guard let entity = schema.entity(of: reference) else { return }
    var values = entity.emptyValues
    for key in entity.keys {
      guard let storage = key.storage else { continue }
      values[storage] = body[key.name].flatMap { Self.accepted($0, by: key) } ?? key.defaultValue
    }
    let record = ObjectRecord(reference, entity: entity, revision: 0, createdAt: 0, values: values)
    let intended = IntendedState(base: former, intents: [reference: record])
    guard access.permits(.create, reference, record, in: intended) else { throw Self.forbidden("create", reference) }
  }

  // MARK: What it would change

  /// Notes what an operation sets of objects that are there: attributes and to-ones. What it does to to-manys, and what
  /// follows by inverses, is not known before it is done.
  private func note(_ operation: Operation, in intended: inout IntendedState<some ObjectReader>, _ schema: Schema) {
    switch operation {
    case .set(let reference, let text, let value):
      guard let start = intended.record(reference)?.entity, let path = try? schema.resolve(text, from: start),
        path.operation == nil, let last = path.keys.last
      else { return }
      var owner = reference
      for key in path.keys.dropLast() {
        guard case .reference(let next) = intended.value(of: owner, key: key) else { return }
        owner = next
      }
      Self.note(owner, in: &intended) { key, index, _ in index == last ? Self.accepted(value, by: key) : nil }
    case .patch(let reference, let patch):
      Self.note(reference, in: &intended) { key, _, present in
        patch[key.name].flatMap { value in
          var steps = 0
          let merged =
            if case .attribute(let attribute) = key.kind, attribute.type == .json {
              MergePatch.merging(value, into: present, steps: &steps)
            } else { value }
          return Self.accepted(merged, by: key)
        }
      }
    case .put(let reference, let body):
      guard let entity = intended.base.record(reference)?.entity else { return }
      let hidden = access.viewer.hiddenKeys(of: entity)
      Self.note(reference, in: &intended) { key, index, _ in
        guard !hidden.contains(index) else { return nil }
        guard let value = body[key.name] else { return key.defaultValue }
        return Self.accepted(value, by: key)
      }
    // What the transaction leaves without is asked nothing afterwards.
    case .delete(let reference): intended.intents[reference] = nil
    default: break
    }
  }

  /// Notes what `value` gives for the stored keys of an object, by key, its index, and its present value.
  private static func note(
    _ reference: Reference, in intended: inout IntendedState<some ObjectReader>,
    _ value: (_ key: Key, _ index: Int, _ present: Value) -> Value?
  ) {
    guard let record = intended.record(reference) else { return }
    var values = Array(record.values)
    for (index, key) in record.entity.keys.enumerated() {
      guard let storage = key.storage, let new = value(key, index, values[storage]) else { continue }
      values[storage] = new
    }
    intended.intents[reference] = ObjectRecord(
      reference, entity: record.entity, revision: record.revision, createdAt: record.createdAt, values: values,
      lease: record.lease)
  }

  /// A value as a key would hold it; nil where it would not.
  private static func accepted(_ value: Value, by key: Key) -> Value? {
    switch key.kind {
    case .attribute(let attribute): return try? attribute.accepting(value)
    case .toOne:
      switch value {
      case .null, .reference: return value
      case .string(let text): return Reference(text).map(Value.reference)
      default: return nil
      }
    case .toMany, .computed: return nil
    }
  }
}
