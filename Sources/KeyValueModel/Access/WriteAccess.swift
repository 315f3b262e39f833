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
