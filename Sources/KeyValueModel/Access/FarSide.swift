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
