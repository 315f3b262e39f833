import CEL

/// A reader of the model, reduced to the claims that the schema's read rules use: equal viewers see the same.
package final class Viewer: Hashable, Sendable {
  /// The outcome of an entity's read rule: the same for all objects, or to be evaluated for each object.
  private enum Reading {
    case all, none
    case asked(AccessRule)
  }

  /// The claims that the rules use; nil for a client without a token.
  package let claims: JSONObject?
  /// True if actions for which no rule exists are permitted.
  package let isPermittedWithoutRule: Bool
  private let identity: ExpressionValue
  /// The outcome of each entity's read rule, by the entity's index.
  private let readings: [Reading]
  /// The keys that the viewer may not read, by the entity's index.
  private let hidden: [Set<Int>]
  /// The hash of the claims, stored because viewers are looked up at each commit.
  private let claimsHash: Int

  /// Creates the viewer for the claims of an identity, or with nil the viewer for clients without a token.
  /// `isPermittedWithoutRule` determines whether actions for which no rule exists are permitted.
  package init(claims: JSONObject?, in schema: Schema, isPermittedWithoutRule: Bool = false) {
    self.isPermittedWithoutRule = isPermittedWithoutRule
    let used = claims.map { schema.identityReads.used(of: $0) }
    let identity = used.map { ExpressionValue(json: .object($0)) } ?? .null
    self.claims = used
    claimsHash = used.map(Value.object).hashValue
    self.identity = identity
    readings = schema.entities.map { entity in
      guard let rule = entity.rules.actions[.read] else { return isPermittedWithoutRule ? .all : .none }
      return rule.outcome(for: identity).map { $0 ? .all : .none } ?? .asked(rule)
    }
    hidden = schema.entities.map { entity in
      Set(entity.rules.keys.filter { _, rules in rules.read.map { !$0.holds(for: identity) } ?? false }.keys)
    }
  }

  /// Returns true if the claims that the rules use, and the default for missing rules, are equal.
  package static func == (left: Viewer, right: Viewer) -> Bool {
    left === right
      || left.claimsHash == right.claimsHash && left.claims == right.claims
        && left.isPermittedWithoutRule == right.isPermittedWithoutRule
  }

  /// Hashes the claims that equality compares.
  package func hash(into hasher: inout Hasher) { hasher.combine(claimsHash) }

  /// Returns true if the viewer may read an object in the state of `reader`, which must not be a guarded reader.
  package func mayRead(_ reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader) -> Bool {
    switch readings[record.entity.index] {
    case .all: true
    case .none: false
    case .asked(let rule): rule.holds(for: identity, reference, record, in: reader)
    }
  }

  /// Returns whether the viewer may read objects of an entity, or nil if that depends on the object. Entities that
  /// extend it may have another rule.
  func mayReadAny(of entity: Entity) -> Bool? {
    switch readings[entity.index] {
    case .all: true
    case .none: false
    case .asked: nil
    }
  }

  /// Returns true if the viewer may read every object of an entity and of the entities that extend it, whatever its
  /// values.
  package func mayReadAll(of entity: Entity, in schema: Schema) -> Bool {
    schema.family(of: entity).allSatisfy { if case .all = readings[$0.index] { true } else { false } }
  }

  /// True if the viewer may read no object at all, whatever its values.
  package var seesNothing: Bool { readings.allSatisfy { if case .none = $0 { true } else { false } } }

  /// True if the viewer may read every object with all its keys, whatever the values.
  var seesEverything: Bool {
    hidden.allSatisfy(\.isEmpty) && readings.allSatisfy { if case .all = $0 { true } else { false } }
  }

  /// Returns true if the viewer may read every object that a key path can lead through, whatever its values.
  package func seesAll(along path: ModelKeyPath, from entity: Entity, in schema: Schema) -> Bool {
    mayReadAll(of: entity, in: schema) && seesAll(behind: path.named, of: entity, schema)
  }

  /// Returns true if the viewer may read every object behind the keys of a tree, whatever its values.
  func seesAll(behind tree: KeyTree, of entity: Entity, _ schema: Schema) -> Bool {
    tree.branches.allSatisfy { branch in
      guard !branch.behind.isEmpty, let destination = schema.destination(of: entity.keys[branch.key]) else {
        return true
      }
      return mayReadAll(of: destination, in: schema) && seesAll(behind: branch.behind, of: destination, schema)
    }
  }

  /// Returns true if every key that a key path names may be read.
  package func mayRead(_ path: ModelKeyPath, from entity: Entity, in schema: Schema) -> Bool {
    hiddenKey(in: path.named, of: entity, schema) == nil
  }

  /// Throws `forbidden` if a key path names a key that the viewer may not read.
  package func check(
    _ path: ModelKeyPath, from entity: Entity, of reference: Reference? = nil, in schema: Schema
  ) throws(ModelError) {
    if let name = hiddenKey(in: path.named, of: entity, schema) {
      throw Self.hiding(name, of: reference, keyPath: path.text)
    }
  }

  /// Throws `forbidden` if the viewer may not read one of the keys.
  package func check(_ keys: KeyTree, of entity: Entity, in schema: Schema) throws(ModelError) {
    if let name = hiddenKey(in: keys, of: entity, schema) { throw Self.hiding(name, of: nil) }
  }

  /// The name of a key in a tree that the viewer may not read: a key of the entity, of an entity that extends it, or of
  /// an entity that its keys lead to. Nil if there is none. A computed key counts as itself: the keys that it reads are
  /// not checked.
  private func hiddenKey(in tree: KeyTree, of entity: Entity, _ schema: Schema) -> String? {
    guard !hidden.allSatisfy(\.isEmpty) else { return nil }
    for branch in tree.branches {
      for member in schema.family(of: entity) where hidden[member.index].contains(branch.key) {
        return member.keys[branch.key].name
      }
      guard let destination = schema.destination(of: entity.keys[branch.key]) else { continue }
      if let name = hiddenKey(in: branch.behind, of: destination, schema) { return name }
    }
    return nil
  }

  /// The error for a request that names a key that its sender may not read.
  static func hiding(_ name: String, of reference: Reference?, keyPath: String? = nil) -> ModelError {
    ModelError(.forbidden, "no rule lets you read '\(name)'", object: reference, keyPath: keyPath ?? name)
  }

  /// The indexes of the keys that the viewer may not read in objects of an entity.
  package func hiddenKeys(of entity: Entity) -> Set<Int> { hidden[entity.index] }

  /// The stored keys that must have certain values in every readable object of the entity and of the entities that
  /// extend it, with these values. An index can find such objects.
  package func equalities(of entity: Entity, in schema: Schema) -> [(key: Int, value: Value)] {
    // An entity that extends it may have a rule of its own.
    let rules = schema.family(of: entity).map { readings[$0.index] }
    guard let first = entity.rules.actions[.read] else { return [] }
    for case let reading in rules {
      guard case .asked(let rule) = reading, rule.text == first.text else { return [] }
    }
    return first.equalities(of: entity, for: identity)
  }
}

extension Schema {
  /// The claims that the read rules of all entities use.
  fileprivate var identityReads: IdentityReads {
    var reads = IdentityReads()
    for entity in entities { reads.merge(entity.rules.identityReads) }
    return reads
  }

  /// True if any entity has a rule, for itself or for a key.
  package var hasRules: Bool {
    entities.contains { !$0.rules.actions.isEmpty || !$0.rules.keys.isEmpty }
  }
}

extension ObjectReader {
  /// Returns true if an object exists and `viewer` may read it; nil stands for a viewer that may read everything. The
  /// reader must not be a guarded reader.
  package func exists(_ reference: Reference, for viewer: Viewer?) -> Bool {
    guard let record = record(reference) else { return false }
    return viewer?.mayRead(reference, record, in: self) ?? true
  }
}

/// A reader that shows the part of another reader's state that a viewer may read (the specification, section 11).
/// Objects that may not be read do not exist in it; references to them remain. Computed keys are evaluated over the
/// whole state.
package struct GuardedReader<Base: ObjectReader>: ObjectReader {
  /// A cache of the read rules' outcomes by object.
  private final class Memory {
    /// The maximum number of cached outcomes. A full cache is emptied.
    static var limit: Int { 65_536 }

    var known: [Reference: Bool] = [:]
  }

  private let base: Base
  /// The viewer whose read rules apply.
  package let viewer: Viewer
  private let memory = Memory()

  /// Creates a reader of the part of `base` that `viewer` may read. `base` must not be a guarded reader, and must not
  /// change while this reader is in use.
  package init(_ base: Base, for viewer: Viewer) {
    (self.base, self.viewer) = (base, viewer)
  }

  /// The record of an object; nil if the object does not exist or may not be read.
  package func record(_ reference: Reference) -> ObjectRecord? {
    guard let record = base.record(reference) else { return nil }
    if let known = memory.known[reference] { return known ? record : nil }
    let isReadable = viewer.mayRead(reference, record, in: base)
    if memory.known.count >= Memory.limit { memory.known.removeAll(keepingCapacity: true) }
    memory.known[reference] = isReadable
    return isReadable ? record : nil
  }

  /// Returns true if the viewer may not read a key.
  package func hides(_ key: Int, of entity: Entity) -> Bool { viewer.hiddenKeys(of: entity).contains(key) }

  /// The work that reads of the base are charged to; nil if they are not counted.
  package var work: ReadingWork? { base.work }

  /// The base, which computed keys are evaluated over.
  package var unguarded: (any ObjectReader)? { base }
}
