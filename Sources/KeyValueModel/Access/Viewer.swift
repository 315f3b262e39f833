import CEL

/// Who reads, as far as the read rules of a schema tell one identity from another: those of equal viewers see the same.
package final class Viewer: Hashable, Sendable {
  /// What the read rule of an entity comes to, where it does not depend on the object.
  private enum Reading {
    case all, none
    case asked(AccessRule)
  }

  /// The claims that the rules use; nil for a client without a token.
  package let claims: JSONObject?
  /// Whether what has no rule may be done.
  package let isPermittedWithoutRule: Bool
  private let identity: ExpressionValue
  /// By the index of the entity.
  private let readings: [Reading]
  /// The keys that may not be read, by the index of the entity.
  private let hidden: [Set<Int>]
  /// The hash of the claims: viewers are looked up at each commit.
  private let claimsHash: Int

  /// The viewer for the claims of an identity, or with nil for clients without a token. `isPermittedWithoutRule` says
  /// whether what has no rule may be done.
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

  /// Equal where the rules use the same of both.
  package static func == (left: Viewer, right: Viewer) -> Bool {
    left === right
      || left.claimsHash == right.claimsHash && left.claims == right.claims
        && left.isPermittedWithoutRule == right.isPermittedWithoutRule
  }

  /// Feeds what equality looks at.
  package func hash(into hasher: inout Hasher) { hasher.combine(claimsHash) }

  /// Whether an object as `reader` has it may be read. `reader` must not be a guarded one.
  package func mayRead(_ reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader) -> Bool {
    switch readings[record.entity.index] {
    case .all: true
    case .none: false
    case .asked(let rule): rule.holds(for: identity, reference, record, in: reader)
    }
  }

  /// Whether objects of an entity may be read, where that does not depend on the object; nil where it does. What
  /// extends the entity may have another rule.
  func mayReadAny(of entity: Entity) -> Bool? {
    switch readings[entity.index] {
    case .all: true
    case .none: false
    case .asked: nil
    }
  }

  /// Whether every object of an entity and of what extends it may be read, whatever it holds.
  package func mayReadAll(of entity: Entity, in schema: Schema) -> Bool {
    schema.family(of: entity).allSatisfy { if case .all = readings[$0.index] { true } else { false } }
  }

  /// Whether no object may be read, whatever it holds.
  package var seesNothing: Bool { readings.allSatisfy { if case .none = $0 { true } else { false } } }

  /// Whether every object may be read with all its keys, whatever it holds.
  var seesEverything: Bool {
    hidden.allSatisfy(\.isEmpty) && readings.allSatisfy { if case .all = $0 { true } else { false } }
  }

  /// Whether everything that a key path leads through may be read, whatever it holds.
  package func seesAll(along path: ModelKeyPath, from entity: Entity, in schema: Schema) -> Bool {
    mayReadAll(of: entity, in: schema) && seesAll(behind: path.named, of: entity, schema)
  }

  /// Whether everything behind the keys of a tree may be read, whatever it holds.
  func seesAll(behind tree: KeyTree, of entity: Entity, _ schema: Schema) -> Bool {
    tree.branches.allSatisfy { branch in
      guard !branch.behind.isEmpty, let destination = schema.destination(of: entity.keys[branch.key]) else {
        return true
      }
      return mayReadAll(of: destination, in: schema) && seesAll(behind: branch.behind, of: destination, schema)
    }
  }

  /// Whether a key path names no key that may not be read.
  package func mayRead(_ path: ModelKeyPath, from entity: Entity, in schema: Schema) -> Bool {
    hiddenKey(in: path.named, of: entity, schema) == nil
  }

  /// Throws `forbidden` for a key path that names a key that may not be read.
  package func check(
    _ path: ModelKeyPath, from entity: Entity, of reference: Reference? = nil, in schema: Schema
  ) throws(ModelError) {
    if let name = hiddenKey(in: path.named, of: entity, schema) {
      throw Self.hiding(name, of: reference, keyPath: path.text)
    }
  }

  /// Throws `forbidden` where one of the keys may not be read.
  package func check(_ keys: KeyTree, of entity: Entity, in schema: Schema) throws(ModelError) {
    if let name = hiddenKey(in: keys, of: entity, schema) { throw Self.hiding(name, of: nil) }
  }

  /// A key that a tree names and that may not be read, of an entity's objects, of those that extend it, or of what they
  /// lead to. What computed keys read is theirs.
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

  /// The refusal of who names a key that they may not read.
  static func hiding(_ name: String, of reference: Reference?, keyPath: String? = nil) -> ModelError {
    ModelError(.forbidden, "no rule lets you read '\(name)'", object: reference, keyPath: keyPath ?? name)
  }

  /// The indexes of the keys of an entity's objects that may not be read.
  package func hiddenKeys(of entity: Entity) -> Set<Int> { hidden[entity.index] }

  /// Stored keys of an entity's objects that must have these values for an object to be readable, those of subclasses
  /// too: what an index may find.
  package func equalities(of entity: Entity, in schema: Schema) -> [(key: Int, value: Value)] {
    // What extends it may have a rule of its own.
    let rules = schema.family(of: entity).map { readings[$0.index] }
    guard let first = entity.rules.actions[.read] else { return [] }
    for case let reading in rules {
      guard case .asked(let rule) = reading, rule.text == first.text else { return [] }
    }
    return first.equalities(of: entity, for: identity)
  }
}

extension Schema {
  /// What the read rules tell identities apart by.
  fileprivate var identityReads: IdentityReads {
    var reads = IdentityReads()
    for entity in entities { reads.merge(entity.rules.identityReads) }
    return reads
  }

  /// Whether any entity has a rule.
  package var hasRules: Bool {
    entities.contains { !$0.rules.actions.isEmpty || !$0.rules.keys.isEmpty }
  }
}

extension ObjectReader {
  /// Whether an object is there for a viewer; with nil, for those who may read everything. The reader must not be a
  /// guarded one.
  package func isThere(_ reference: Reference, for viewer: Viewer?) -> Bool {
    guard let record = record(reference) else { return false }
    return viewer?.mayRead(reference, record, in: self) ?? true
  }
}

/// What a viewer may see of what another reader has (the specification, section 11): objects that may not be read are
/// not there, and references to them stay. Computed keys are worked out from everything.
package struct GuardedReader<Base: ObjectReader>: ObjectReader {
  /// Whether objects may be read, as far as that was asked.
  private final class Memory {
    /// The most answers that are kept; then all are asked anew.
    static var limit: Int { 65_536 }

    var known: [Reference: Bool] = [:]
  }

  private let base: Base
  /// Who reads.
  package let viewer: Viewer
  private let memory = Memory()

  /// What `viewer` may see of `base`, which is not guarded itself and does not change meanwhile.
  package init(_ base: Base, for viewer: Viewer) {
    (self.base, self.viewer) = (base, viewer)
  }

  /// The object of this name; nil also where it may not be read.
  package func record(_ reference: Reference) -> ObjectRecord? {
    guard let record = base.record(reference) else { return nil }
    if let known = memory.known[reference] { return known ? record : nil }
    let isReadable = viewer.mayRead(reference, record, in: base)
    if memory.known.count >= Memory.limit { memory.known.removeAll(keepingCapacity: true) }
    memory.known[reference] = isReadable
    return isReadable ? record : nil
  }

  /// Whether the viewer may not read a key.
  package func hides(_ key: Int, of entity: Entity) -> Bool { viewer.hiddenKeys(of: entity).contains(key) }

  /// What the base reads as part of.
  package var work: ReadingWork? { base.work }

  /// The base, for computed keys.
  package var unguarded: (any ObjectReader)? { base }
}
