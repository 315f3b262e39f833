import CEL

/// Who writes a transaction, where rules are asked about it (the specification, section 11). They are asked on the
/// writer, of the state that the transaction meets and of the one that it leaves.
package struct WriteAccess: Sendable {
  private let identity: ExpressionValue
  /// What the writer may read.
  package let viewer: Viewer
  /// What the rules come to that do not depend on the object, by the index of the entity.
  private let outcomes: [[AccessRules.Action: Bool]]

  /// A writer with these claims, nil for a client without a token, who may read what `viewer` may.
  package init(claims: JSONObject?, viewer: Viewer, in schema: Schema) {
    let identity = claims.map { ExpressionValue(json: .object($0)) } ?? .null
    self.identity = identity
    self.viewer = viewer
    outcomes = schema.entities.map { entity in
      var outcomes: [AccessRules.Action: Bool] = [:]
      for action in AccessRules.Action.allCases where action != .read {
        guard let rule = entity.rules.actions[action] else {
          outcomes[action] = viewer.isPermittedWithoutRule
          continue
        }
        outcomes[action] = rule.outcome(for: identity)
      }
      return outcomes
    }
  }

  /// Whether a rule lets the writer do something with an object. `before` is the object before the transaction, where
  /// it is changed.
  func permits(
    _ action: AccessRules.Action, _ reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader,
    before: (record: ObjectRecord, reader: any ObjectReader)? = nil
  ) -> Bool {
    if let outcome = permits(action, of: record.entity) { return outcome }
    guard let rule = record.entity.rules.actions[action] else { return viewer.isPermittedWithoutRule }
    return rule.holds(for: identity, reference, record, in: reader, before: before)
  }

  /// Whether a rule lets the writer do something with objects of an entity, as far as that does not depend on the
  /// object; nil where it does.
  func permits(_ action: AccessRules.Action, of entity: Entity) -> Bool? { outcomes[entity.index][action] }

  /// Whether the writer may set a key of an entity's objects.
  func maySet(_ key: Int, of entity: Entity) -> Bool {
    entity.rules.keys[key]?.update?.holds(for: identity) ?? true
  }

  /// Returns whether the writer may change a key through its inverse, or nil if the key has no rule `inverse`.
  func mayChangeThroughInverse(_ key: Int, of entity: Entity) -> Bool? {
    entity.rules.keys[key]?.inverse?.holds(for: identity)
  }
}

/// The rules that a write is asked for a key that it changes through the key's inverse (the specification, section 11,
/// "Inverses").
enum FarSide: Hashable, Sendable {
  /// The key has no inverse, so that no write changes it from elsewhere.
  case none
  /// A to-one: the object's `update` rule and the key's.
  case toOne
  /// A to-many whose inverse is a to-one: no rule, since the write is asked for that to-one.
  case mirror
  /// A to-many whose inverse is a to-many: the key's `inverse` rule, or as a to-one where it has none.
  case mutual
}

extension Schema {
  /// The rules that a key is protected by when a write changes it through its inverse.
  func farSide(of key: Key) -> FarSide {
    guard let relationship = key.relationship, let inverse = relationship.inverseIndex,
      let destination = entity(named: relationship.destination)
    else { return .none }
    guard key.isToMany else { return .toOne }
    return destination.keys[inverse].isToMany ? .mutual : .mirror
  }

  /// The keys of a tree that writes to other objects change without asking the `update` rule of their own object; as
  /// `Entity.key`, each with the `Entity.key` that such a write names.
  func unguardedKeys(in tree: KeyTree, of entity: Entity) -> [(key: String, inverse: String)] {
    var found: [(key: String, inverse: String)] = []
    for branch in tree.branches {
      let key = entity.keys[branch.key]
      if case .computed(let computed) = key.kind {
        found += unguardedKeys(in: computed.reads, of: entity)
      } else if isUnguarded(branch.key, of: entity), let relationship = key.relationship,
        let inverse = relationship.inverse
      {
        found.append(("\(entity.name).\(key.name)", "\(relationship.destination).\(inverse)"))
      }
      if let destination = destination(of: key) { found += unguardedKeys(in: branch.behind, of: destination) }
    }
    return found
  }

  private func isUnguarded(_ index: Int, of entity: Entity) -> Bool {
    switch farSide(of: entity.keys[index]) {
    case .none, .toOne: false
    case .mirror: true
    case .mutual: family(of: entity).contains { $0.rules.keys[index]?.inverse != nil }
    }
  }
}

/// One transaction under the rules: what was asked already, and what is to be asked of the state that it leaves. It is
/// asked twice about each operation: all of them before the first is applied, and each as it is.
struct WriteInquiry {
  private let access: WriteAccess
  /// The objects that were there and may be changed, as far as they were before; with what changes each.
  private var updated: [Reference: Cause] = [:]
  /// The objects that were not there and were named; with the operation that did.
  private var created: [Reference: Int] = [:]
  /// The objects that the operations make, as far as they were asked about.
  private var made: Set<Reference> = []
  /// The objects that the operations make and give a lifetime; with the operation that does.
  private var leased: [Reference: Int] = [:]
  /// Whether objects might be read before, as far as that was asked.
  private var readable: [Reference: Bool] = [:]

  /// The operation that changes an object, and the object that its refusal names: another one where the writer must
  /// not learn that this object is changed.
  private struct Cause {
    let operation: Int
    let shown: Reference
  }

  init(_ access: WriteAccess) { self.access = access }

  /// What the writer may read.
  var viewer: Viewer { access.viewer }

  // MARK: Before

  /// Asks what can be asked of an operation before it is applied: whether what it names may be read and changed as it
  /// stood before the transaction, which is `former`, and whether the keys may be set. `present` is the state that the
  /// operation meets.
  mutating func ask(
    _ operation: Operation, _ index: Int, former: some ObjectReader, present: some ObjectReader, in schema: Schema
  ) throws(ModelError) {
    let reference = operation.reference
    switch operation {
    case .create(_, let body):
      try askCreation(of: reference, index, former: former, present: present, in: schema)
      try askKeys(of: body, reference, in: schema)
    case .put(_, let body):
      if present.record(reference) == nil {
        try askCreation(of: reference, index, former: former, present: present, in: schema)
      } else if former.record(reference) == nil {
        // Made by this transaction.
      } else if isReadable(reference, in: former) {
        try askUpdate(of: reference, index, former, schema)
      } else {
        throw Self.forbidden("create", reference)
      }
      try askKeys(of: body, reference, in: schema)
      try askDefaults(beside: body, reference, present)
    case .patch(_, let body):
      try askUpdate(of: reference, index, former, schema)
      try askKeys(of: body, reference, in: schema)
    case .jsonPatch(_, let patch):
      try askUpdate(of: reference, index, former, schema)
      try askKeys(of: patch, reference, in: schema)
    case .set(_, let keyPath, _):
      try askPlace(reference, keyPath, index, former: former, present: present, in: schema)
    case .insert(_, let keyPath, let members, _), .replace(_, let keyPath, _, let members),
      .mutateSet(_, let keyPath, _, let members):
      try askPlace(reference, keyPath, index, former: former, present: present, in: schema)
      for case .object(let member, let body) in members {
        try askCreation(of: member, index, former: former, present: present, in: schema)
        try askKeys(of: body, member, in: schema)
      }
    case .removeIndexes(_, let keyPath, _), .removeMembers(_, let keyPath, _):
      try askPlace(reference, keyPath, index, former: former, present: present, in: schema)
    case .delete:
      try requireReadable(reference, in: former, schema)
      guard let record = former.record(reference) else { return }
      guard access.permits(.delete, reference, record, in: former) else { throw Self.forbidden("delete", reference) }
    case .willChange(_, let key), .didChange(_, let key):
      try askUpdate(of: reference, index, former, schema)
      try askKeys([key], reference, in: schema)
    case .require: try requireReadable(reference, in: former, schema)
    case .lifetime(_, let lifetime): try askLifetime(lifetime, of: reference, index, former: former, present: present)
    }
  }

  private mutating func askCreation(
    of reference: Reference, _ index: Int, former: some ObjectReader, present: some ObjectReader, in schema: Schema
  ) throws(ModelError) {
    if former.record(reference) != nil, !isReadable(reference, in: former) { throw Self.forbidden("create", reference) }
    made.insert(reference)
    guard let entity = schema.entity(of: reference) else { return }
    guard access.permits(.create, of: entity) ?? true else { throw Self.forbidden("create", reference) }
    // What is there is refused for that.
    guard present.record(reference) == nil, created[reference] == nil else { return }
    created[reference] = index
  }

  private mutating func askUpdate(
    of reference: Reference, _ index: Int, _ former: some ObjectReader, _ schema: Schema
  ) throws(ModelError) {
    try requireReadable(reference, in: former, schema)
    try askUpdate(of: reference, Cause(operation: index, shown: reference), former)
  }

  private mutating func askUpdate(
    of reference: Reference, _ cause: Cause, _ former: some ObjectReader
  ) throws(ModelError) {
    guard updated[reference] == nil, let record = former.record(reference) else { return }
    guard access.permits(.update, reference, record, in: former, before: (record, former)) else {
      throw Self.forbidden(reference, cause)
    }
    updated[reference] = cause
  }

  /// A lifetime is a deletion, so `delete` is asked: of the object before the transaction, or as the transaction leaves
  /// it where that makes it. Renewing the seconds that the object has, and `none`, need the write that says so alone.
  private mutating func askLifetime(
    _ lifetime: Lifetime, of reference: Reference, _ index: Int, former: some ObjectReader, present: some ObjectReader
  ) throws(ModelError) {
    guard lifetime != .unlimited else { return }
    guard let record = former.record(reference), present.record(reference)?.createdAt == record.createdAt else {
      leased[reference] = leased[reference] ?? index
      return
    }
    if case .seconds = lifetime, record.lease?.lifetime == lifetime { return }
    guard access.permits(.delete, reference, record, in: former) else { throw Self.forbiddenLifetime(of: reference) }
  }

  /// Throws `unknown-object` for what may not be read and, in its turn, for what is not there: which of the two it is
  /// would show by what is found wrong first. The entities of a schema are no secret.
  private mutating func requireReadable(
    _ reference: Reference, in former: some ObjectReader, _ schema: Schema
  ) throws(ModelError) {
    if former.record(reference) == nil {
      guard !made.contains(reference), schema.entity(of: reference) != nil else { return }
    } else {
      guard !isReadable(reference, in: former) else { return }
    }
    throw ModelError(.unknownObject, "object \(reference) does not exist", object: reference)
  }

  private mutating func isReadable(_ reference: Reference, in former: some ObjectReader) -> Bool {
    if let known = readable[reference] { return known }
    guard let record = former.record(reference) else { return true }
    if let isReadable = access.viewer.mayReadAny(of: record.entity) { return isReadable }
    let isReadable = access.viewer.mayRead(reference, record, in: former)
    readable[reference] = isReadable
    return isReadable
  }

  // MARK: Inverses

  /// Asks about keys that an operation has changed through their inverses: the rules of those keys, and `update` of
  /// the objects that have them. Delete rules need no permission.
  mutating func ask(
    about changes: [ObjectKey], by operation: Operation, _ index: Int, former: some ObjectReader,
    in schema: Schema
  ) throws(ModelError) {
    if case .delete = operation { return }
    for change in changes {
      guard let entity = schema.entity(of: change.object) else { continue }
      let farSide = schema.farSide(of: entity.keys[change.key])
      guard farSide != .mirror else { continue }
      let isShown = isReadable(change.object, in: former) && !viewer.hiddenKeys(of: entity).contains(change.key)
      let cause = Cause(operation: index, shown: isShown ? change.object : operation.reference)
      let rule = farSide == .mutual ? access.mayChangeThroughInverse(change.key, of: entity) : nil
      guard rule ?? access.maySet(change.key, of: entity) else {
        throw isShown
          ? Self.forbidden(change.key, of: entity, change.object) : Self.forbidden(change.object, cause)
      }
      if rule == nil { try askUpdate(of: change.object, cause, former) }
    }
  }

  // MARK: Keys

  /// Asks for the object that the last key of a path belongs to, and for that key.
  private mutating func askPlace(
    _ reference: Reference, _ keyPath: String, _ index: Int, former: some ObjectReader, present: some ObjectReader,
    in schema: Schema
  ) throws(ModelError) {
    try requireReadable(reference, in: former, schema)
    // What is wrong with the path itself is for the writer to say.
    guard let start = present.record(reference)?.entity, let path = try? schema.resolve(keyPath, from: start) else {
      return
    }
    try access.viewer.check(path, from: start, of: reference, in: schema)
    var owner = reference
    var entity = start
    for key in path.keys.dropLast() {
      guard case .reference(let next) = present.value(of: owner, key: key) else { return }
      guard isReadable(next, in: former) else {
        throw ModelError(.nullInKeyPath, "'\(keyPath)' leads through a null", object: reference, keyPath: keyPath)
      }
      guard let found = present.record(next)?.entity else { return }
      (owner, entity) = (next, found)
    }
    try askUpdate(of: owner, index, former, schema)
    guard let key = path.keys.last, entity.keys.indices.contains(key) else { return }
    guard access.maySet(key, of: entity) else { throw Self.forbidden(key, of: entity, owner) }
  }

  private func askKeys(of body: JSONObject, _ reference: Reference, in schema: Schema) throws(ModelError) {
    try askKeys(body.members.keys, reference, in: schema)
  }

  private func askKeys(
    _ names: some Sequence<String>, _ reference: Reference, in schema: Schema
  ) throws(ModelError) {
    guard let entity = schema.entity(of: reference), !entity.rules.keys.isEmpty else { return }
    for name in names {
      guard let key = entity.indexOfKey(name), !access.maySet(key, of: entity) else { continue }
      throw Self.forbidden(key, of: entity, reference)
    }
  }

  /// A `PUT` sets the keys that its body leaves out, too: to their defaults.
  private func askDefaults(
    beside body: JSONObject, _ reference: Reference, _ present: some ObjectReader
  ) throws(ModelError) {
    guard let record = present.record(reference) else { return }
    let entity = record.entity
    let hidden = access.viewer.hiddenKeys(of: entity)
    for key in entity.rules.keys.keys.sorted() where !hidden.contains(key) && body[entity.keys[key].name] == nil {
      guard let storage = entity.keys[key].storage, record.values[storage] != entity.keys[key].defaultValue,
        !access.maySet(key, of: entity)
      else { continue }
      throw Self.forbidden(key, of: entity, reference)
    }
  }

  /// The keys of the object that an operation changes as a whole, and that the writer may not read.
  func keysLeftAlone(by operation: Operation, in present: borrowing ModelState) -> Set<Int> {
    switch operation {
    case .put(let reference, _), .jsonPatch(let reference, _):
      present.record(reference).map { access.viewer.hiddenKeys(of: $0.entity) } ?? []
    default: []
    }
  }

  /// The keys that the writer may not set, of an object whose document an operation replaces as a whole: which of them
  /// it sets shows only when it is applied.
  func closedKeys(to operation: Operation, in present: borrowing ModelState) -> Set<Int> {
    guard case .jsonPatch(let reference, let patch) = operation, patch.touchesDocument,
      let entity = present.record(reference)?.entity
    else { return [] }
    return Set(entity.rules.keys.keys.filter { !access.maySet($0, of: entity) })
  }

  /// What a patch only reads may not be told by whether it can be applied.
  private func askKeys(of patch: JSONPatch, _ reference: Reference, in schema: Schema) throws(ModelError) {
    try askKeys(patch.touchedMembers, reference, in: schema)
    guard let entity = schema.entity(of: reference) else { return }
    let hidden = access.viewer.hiddenKeys(of: entity)
    for name in patch.namedMembers ?? [] {
      guard let key = entity.indexOfKey(name), hidden.contains(key) else { continue }
      throw Viewer.hiding(name, of: reference)
    }
  }

  // MARK: After

  /// Asks what depends on the state that the transaction leaves: what it made, what it changed, and what it refers to
  /// anew. `former` is the state before it.
  mutating func ask(
    after steps: [Commit.Step], of operations: [Operation], former: some ObjectReader, present: some ObjectReader
  ) throws(ModelError) {
    try ask(ofObjectsAfter: former, present)
    // A requirement is no step.
    let stepping = operations.indices.filter { if case .require = operations[$0] { false } else { true } }
    for (index, step) in zip(stepping, steps) {
      guard case .change(let changes) = step.kind else { continue }
      for change in changes { try askReferences(change, index, former: former, present: present) }
    }
  }

  /// Asks what depends on how the objects stand in the end: of those that the transaction has made, changed, and given
  /// a lifetime while it made them.
  private func ask(ofObjectsAfter former: some ObjectReader, _ present: some ObjectReader) throws(ModelError) {
    for (reference, index) in created.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
      guard let record = present.record(reference) else { continue }
      guard access.permits(.create, reference, record, in: present) else {
        throw Self.forbidden("create", reference, index)
      }
    }
    for (reference, cause) in updated.sorted(by: { ($0.value.operation, $0.key) < ($1.value.operation, $1.key) }) {
      guard let record = present.record(reference), let old = former.record(reference) else { continue }
      guard access.permits(.update, reference, record, in: present, before: (old, former)) else {
        throw Self.forbidden(reference, cause)
      }
    }
    for (reference, index) in leased.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
      guard let record = present.record(reference) else { continue }
      guard access.permits(.delete, reference, record, in: present) else {
        throw Self.forbiddenLifetime(of: reference, index)
      }
    }
  }

  /// Whether the rules let an object of `state`, which was asked of before, become `new`: it differs in attributes
  /// alone, so that nothing is referred to anew.
  func permits(
    _ new: ObjectRecord, insteadOf old: ObjectRecord, of reference: Reference, in state: ModelState
  ) -> Bool {
    if let outcome = access.permits(.update, of: new.entity) { return outcome }
    let present = IntendedState(base: state, intents: [reference: new])
    return access.permits(.update, reference, new, in: present, before: (old, state))
  }

  /// A new reference to what may not be read is like one to what is not there.
  private mutating func askReferences(
    _ change: Commit.KeyChange, _ index: Int, former: some ObjectReader, present: some ObjectReader
  ) throws(ModelError) {
    guard updated[change.object] != nil || created[change.object] != nil,
      let record = present.record(change.object), record.entity.keys[change.key].relationship != nil
    else { return }
    let key = record.entity.keys[change.key]
    let old = former.record(change.object).map { former.value(of: $0, change.object, key: change.key) }
    var found: [Value]
    switch present.value(of: record, change.object, key: change.key) {
    case .reference(let target): found = old == .reference(target) ? [] : [.reference(target)]
    case .members(let list):
      if let inserted = change.collection?.inserted {
        found = inserted
      } else if case .members(let before)? = old {
        found = list.filter { !before.contains($0) }
      } else {
        found = Array(list)
      }
    default: found = []
    }
    for case .reference(let target) in found where !isReadable(target, in: former) {
      throw ModelError(
        .invalidValue, "'\(key.name)': object \(target) does not exist", object: change.object, keyPath: key.name,
        operation: index)
    }
  }

  // MARK: Transactions that are refused

  /// Asks about a transaction that is refused, of which `operations` are the first ones, whether it may make and change
  /// what it would.
  mutating func ask(
    afterFailureOf operations: some Collection<Operation>, _ preparations: [Preparation], in model: Model,
    _ limits: TransactionLimits
  ) throws(ModelError) {
    var refused = RefusedTransaction(in: model, limits, for: viewer)
    for (index, operation) in operations.enumerated() {
      // Also what is there already.
      for reference in operation.creations where created[reference] == nil { created[reference] = index }
      do throws(ModelError) {
        try ask(operation, index, former: model.state, present: refused.present, in: model.schema)
        refused.apply(operation, index < preparations.count ? preparations[index] : .none, asking: self)
        guard refused.isWithinBudget else { break }
        try ask(about: refused.farChanges, by: operation, index, former: model.state, in: model.schema)
      } catch {
        // What else is wrong with an operation comes after the conditions.
        guard error.code == .forbidden else { continue }
        var located = error
        located.operation = index
        throw located
      }
    }
    try ask(ofObjectsAfter: model.state, refused.present)
  }

  // MARK: Refusals

  /// Returns what the model refuses without what it says of other objects.
  static func guarded(_ error: ModelError) -> ModelError {
    guard error.code == .deleteDenied else { return error }
    var guarded = ModelError(.deleteDenied, "something that refers to it forbids that it is deleted")
    (guarded.object, guarded.operation) = (error.object, error.operation)
    return guarded
  }

  private static func forbidden(_ reference: Reference, _ cause: Cause) -> ModelError {
    guard cause.shown != reference else { return forbidden("update", reference, cause.operation) }
    return ModelError(
      .forbidden, "no rule lets you change the other side of a relationship as this would", object: cause.shown,
      operation: cause.operation)
  }

  private static func forbiddenLifetime(of reference: Reference, _ operation: Int? = nil) -> ModelError {
    ModelError(
      .forbidden, "a lifetime needs 'delete', and no rule lets you delete \(reference)", object: reference,
      operation: operation)
  }

  private static func forbidden(_ action: String, _ reference: Reference, _ operation: Int? = nil) -> ModelError {
    ModelError(.forbidden, "no rule lets you \(action) \(reference)", object: reference, operation: operation)
  }

  /// The refusal to set a key.
  static func forbidden(_ key: Int, of entity: Entity, _ reference: Reference) -> ModelError {
    let name = entity.keys[key].name
    return ModelError(.forbidden, "no rule lets you set '\(name)'", object: reference, keyPath: name)
  }
}

extension Operation {
  /// The objects that the operation makes, whatever is there.
  fileprivate var creations: [Reference] {
    switch self {
    case .create(let reference, _): [reference]
    case .insert(_, _, let members, _), .replace(_, _, _, let members), .mutateSet(_, _, _, let members):
      members.compactMap { if case .object(let reference, _) = $0 { reference } else { nil } }
    default: []
    }
  }
}

/// A state with objects as they are to be: some that could not be made, and some that are to be changed.
private struct IntendedState<Base: ObjectReader>: ObjectReader {
  let base: Base
  /// The objects as they are to be; the others are as they are.
  var intents: [Reference: ObjectRecord]

  func record(_ reference: Reference) -> ObjectRecord? { intents[reference] ?? base.record(reference) }
}
