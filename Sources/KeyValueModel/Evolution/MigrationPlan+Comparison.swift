/// What can be said of a key's values from the schemas alone.
extension MigrationPlan {
  /// Whether every value of `before` is one of `key` as it is.
  func goesOverAsItIs(_ before: Key, _ key: Key) -> Bool {
    guard before.isOrdered == key.isOrdered else { return false }
    if let old = before.valueAttribute, let new = key.valueAttribute {
      return new.isUnconstrained || new.hasSameConstraints(as: old)
    }
    guard let source = before.relationship?.destination, let target = key.relationship?.destination,
      let entity = old.entity(named: source)
    else { return false }
    return old.family(of: entity).allSatisfy { member in
      guard let new = entities[member.index].new else { return false }
      return new.name == member.name && new.isKind(of: target)
    }
  }

  /// Whether two keys have the same inverse, by its present name.
  func isSettled(_ before: Key, _ key: Key) -> Bool {
    guard let relationship = key.relationship, let inverse = relationship.inverse else { return true }
    guard let former = before.relationship, let index = former.inverseIndex,
      let destination = old.entity(named: former.destination)
    else { return false }
    let names = names.entities[destination.index]
    return names.name == relationship.destination && names.keys[index] == inverse
  }
}
