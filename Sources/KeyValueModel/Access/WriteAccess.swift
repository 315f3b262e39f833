import CEL

/// The access of the writer of one transaction (the specification, section 11). The rules are evaluated on the writer,
/// for the state before the transaction and for the state that it leaves.
///
/// A class, since every request and every transaction has one, and copies of them count one reference.
package final class WriteAccess: Sendable {
  private let identity: ExpressionValue
  /// The viewer that determines what the writer may read.
  package let viewer: Viewer
  /// The outcomes of the rules that do not depend on the object, by the index of the entity.
  private let outcomes: [[AccessRules.Action: Bool]]

  /// Creates the access of a writer with these claims, or with nil of a client without a token. `viewer` determines
  /// what the writer may read.
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

  /// Returns true if the rules permit the writer an action on an object. `before` is the object before the transaction,
  /// for an update.
  func permits(
    _ action: AccessRules.Action, _ reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader,
    before: (record: ObjectRecord, reader: any ObjectReader)? = nil
  ) -> Bool {
    if let outcome = permits(action, of: record.entity) { return outcome }
    guard let rule = record.entity.rules.actions[action] else { return viewer.isPermittedWithoutRule }
    return rule.holds(for: identity, reference, record, in: reader, before: before)
  }

  /// Returns whether the rules permit the writer an action on objects of an entity, or nil if that depends on the
  /// object.
  func permits(_ action: AccessRules.Action, of entity: Entity) -> Bool? { outcomes[entity.index][action] }

  /// Returns true if the writer may set a key of an entity's objects.
  func maySet(_ key: Int, of entity: Entity) -> Bool {
    entity.rules.keys[key]?.update?.holds(for: identity) ?? true
  }

  /// Returns whether the writer may change a key through its inverse, or nil if the key has no rule `inverse`.
  func mayChangeThroughInverse(_ key: Int, of entity: Entity) -> Bool? {
    entity.rules.keys[key]?.inverse?.holds(for: identity)
  }
}

/// The rules that apply when a write changes a key through the key's inverse (the specification, section 11,
/// "Inverses").
enum FarSide: Hashable, Sendable {
  /// The key has no inverse, so no write to another object changes it.
  case none
  /// A to-one: the object's `update` rule and the key's.
  case toOne
  /// A to-many whose inverse is a to-one: no rule, since the rules of that to-one apply to the write.
  case mirror
  /// A to-many whose inverse is a to-many: the key's `inverse` rule, or the rules of a to-one if it has none.
  case mutual
}

extension Schema {
  /// The rules that protect a key from a write that changes it through its inverse.
  func farSide(of key: Key) -> FarSide {
    guard let relationship = key.relationship, let inverse = relationship.inverseIndex,
      let destination = entity(named: relationship.destination)
    else { return .none }
    guard key.isToMany else { return .toOne }
    return destination.keys[inverse].isToMany ? .mutual : .mirror
  }

  /// The keys of a tree that writes to other objects can change without a check of the `update` rule of the keys' own
  /// object: each as `Entity.key`, with the `Entity.key` that such a write sets.
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

/// The check of one transaction against the rules: what has been checked so far, and what remains to be checked in the
/// state that the transaction leaves. Each operation is checked twice: all operations before the first is applied, and
/// each before it is applied.
struct WriteInquiry {
  private let access: WriteAccess
  /// The existing objects that the transaction changes and that may be changed as they were before it, each with the
  /// cause of its change.
  private var updated: [Reference: Cause] = [:]
  /// The objects that did not exist and that an operation creates, with that operation.
  private var created: [Reference: Int] = [:]
  /// The objects that the operations checked so far create.
  private var made: Set<Reference> = []
  /// The objects that the operations both create and give a lifetime, with the operation that gives it.
  private var leased: [Reference: Int] = [:]
  /// A cache: for each object, whether the writer may read it in the state before the transaction.
  private var readable: [Reference: Bool] = [:]

  /// The operation that changes an object, and the object that an error names: another object if the writer must not
  /// learn that this one is changed.
  private struct Cause {
    let operation: Int
    let shown: Reference
  }

  init(_ access: WriteAccess) { self.access = access }

  /// The viewer that determines what the writer may read.
  var viewer: Viewer { access.viewer }

  // MARK: Before

  /// Checks what can be checked before an operation is applied: that the objects it names may be read and changed as
  /// they were before the transaction, in `former`, and that its keys may be set. `present` is the state that the
  /// operation is applied to.
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
        // Created by this transaction.
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
    // An object that exists already is refused for that reason.
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

  /// Checks the `delete` rule, since a lifetime is a deletion to come: for the object before the transaction, or for
  /// the object that the transaction leaves if the transaction creates it. Renewing the seconds that the object has,
  /// and `none`, need no more than the permission to write to the object.
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

  /// Throws `unknown-object` for an object that may not be read, and at the same point for one that does not exist: a
  /// difference in which error comes first would tell the two apart. The entities of a schema are not secret.
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

  /// Checks the keys that an operation changed through their inverses: the rules of those keys, and the `update` rules
  /// of the objects that have them. Changes made by delete rules need no permission.
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

  /// Checks the object that the last key of a path belongs to, and that key.
  private mutating func askPlace(
    _ reference: Reference, _ keyPath: String, _ index: Int, former: some ObjectReader, present: some ObjectReader,
    in schema: Schema
  ) throws(ModelError) {
    try requireReadable(reference, in: former, schema)
    // `ObjectWriter` reports a mistake in the path itself.
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

  /// Checks the keys that the body of a `PUT` leaves out: the `PUT` sets these to their defaults.
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

  /// The keys that the writer may not read, of an object that an operation changes as a whole.
  func keysLeftAlone(by operation: Operation, in present: borrowing ModelState) -> Set<Int> {
    switch operation {
    case .put(let reference, _), .jsonPatch(let reference, _):
      present.record(reference).map { access.viewer.hiddenKeys(of: $0.entity) } ?? []
    default: []
    }
  }

  /// The keys that the writer may not set, of an object whose document an operation replaces as a whole. The keys that
  /// the operation sets are known only when it is applied.
  func closedKeys(to operation: Operation, in present: borrowing ModelState) -> Set<Int> {
    guard case .jsonPatch(let reference, let patch) = operation, patch.touchesDocument,
      let entity = present.record(reference)?.entity
    else { return [] }
    return Set(entity.rules.keys.keys.filter { !access.maySet($0, of: entity) })
  }

  /// Checks the keys that a patch names. Keys that it only reads count too: success or failure of the patch would
  /// reveal their values.
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

  /// Checks what depends on the state that the transaction leaves: the objects that it created and changed, and its new
  /// references. `former` is the state before it.
  mutating func ask(
    after steps: [Commit.Step], of operations: [Operation], former: some ObjectReader, present: some ObjectReader
  ) throws(ModelError) {
    try ask(ofObjectsAfter: former, present)
    // A requirement makes no step.
    let stepping = operations.indices.filter { if case .require = operations[$0] { false } else { true } }
    for (index, step) in zip(stepping, steps) {
      guard case .change(let changes) = step.kind else { continue }
      for change in changes { try askReferences(change, index, former: former, present: present) }
    }
  }

  /// Checks the objects as the transaction leaves them: those that it created, those that it changed, and those that it
  /// both created and gave a lifetime.
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

  /// Returns true if the rules permit an object of `state`, checked before, to become `new`. The two differ in
  /// attributes alone, so there are no new references to check.
  func permits(
    _ new: ObjectRecord, insteadOf old: ObjectRecord, of reference: Reference, in state: ModelState
  ) -> Bool {
    if let outcome = access.permits(.update, of: new.entity) { return outcome }
    let present = IntendedState(base: state, intents: [reference: new])
    return access.permits(.update, reference, new, in: present, before: (old, state))
  }

  /// Checks the new references of a change: a reference to an object that may not be read is refused like one to an
  /// object that does not exist.
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

  /// Checks whether a refused transaction may create and change what it would. `operations` are its first operations.
  mutating func ask(
    afterFailureOf operations: some Collection<Operation>, _ preparations: [Preparation], in model: Model,
    _ limits: TransactionLimits
  ) throws(ModelError) {
    var refused = RefusedTransaction(in: model, limits, for: viewer)
    for (index, operation) in operations.enumerated() {
      // Including objects that exist already.
      for reference in operation.creations where created[reference] == nil { created[reference] = index }
      do throws(ModelError) {
        try ask(operation, index, former: model.state, present: refused.present, in: model.schema)
        refused.apply(operation, index < preparations.count ? preparations[index] : .none, asking: self)
        guard refused.isWithinBudget else { break }
        try ask(about: refused.farChanges, by: operation, index, former: model.state, in: model.schema)
      } catch {
        // Other mistakes of an operation come after the conditions.
        guard error.code == .forbidden else { continue }
        var located = error
        located.operation = index
        throw located
      }
    }
    try ask(ofObjectsAfter: model.state, refused.present)
  }

  // MARK: Refusals

  /// Returns an error of the model without what it reveals about objects that the operations do not name.
  static func guarded(_ error: ModelError, in operations: [Operation]) -> ModelError {
    guard error.code == .deleteDenied else { return error }
    var guarded = ModelError(.deleteDenied, "it cannot be deleted: a relationship with another object forbids that")
    (guarded.object, guarded.operation) = ("\(operations[error.operation ?? 0].reference)", error.operation)
    return guarded
  }

  private static func forbidden(_ reference: Reference, _ cause: Cause) -> ModelError {
    guard cause.shown != reference else { return forbidden("update", reference, cause.operation) }
    return ModelError(
      .forbidden, "no rule lets you make this change to the other side of the relationship", object: cause.shown,
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
  /// The objects that the operation creates, whether or not they exist.
  fileprivate var creations: [Reference] {
    switch self {
    case .create(let reference, _): [reference]
    case .insert(_, _, let members, _), .replace(_, _, _, let members), .mutateSet(_, _, _, let members):
      members.compactMap { if case .object(let reference, _) = $0 { reference } else { nil } }
    default: []
    }
  }
}

/// A state in which some objects have their intended records: objects that could not be created, and objects that are
/// about to change.
private struct IntendedState<Base: ObjectReader>: ObjectReader {
  let base: Base
  /// The records of the objects that differ from `base`.
  var intents: [Reference: ObjectRecord]

  func record(_ reference: Reference) -> ObjectRecord? { intents[reference] ?? base.record(reference) }
}
