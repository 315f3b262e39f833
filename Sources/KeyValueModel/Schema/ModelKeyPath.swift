/// A key path that has been resolved in the schema: keys joined by dots, from an object of one entity.
public struct ModelKeyPath: Hashable, Sendable {
  /// The path as it was written; what events and answers call it.
  public let text: String
  /// The index of each key among the keys of the entity reached so far.
  public let keys: [Int]

  /// The most keys that a path may have.
  public static let maximumLength = 32
}

extension Schema {
  /// Resolves a key path from objects of `entity`. What it may name is decided from the schema alone: a key that only a
  /// subclass has is undefined behind a to-one of its parent.
  ///
  /// Throws `malformed-key-path`, `undefined-key`, or `not-a-collection` for an operator where there is no collection.
  public func resolve(_ text: String, from entity: Entity) throws(ModelError) -> ModelKeyPath {
    let components = try KeyPathGrammar.components(of: text)
    var current: Entity? = entity
    var indexes: [Int] = []
    for component in components {
      guard !component.isOperator else {
        throw ModelError(.notACollection, "'\(component.name)' in '\(text)' stands behind no collection", keyPath: text)
      }
      guard let owner = current else {
        throw ModelError(
          .undefinedKey, "'\(component.name)' in '\(text)' stands behind a value that has no keys", keyPath: text)
      }
      guard let index = owner.indexOfKey(component.name) else {
        throw ModelError(.undefinedKey, "\(owner.name) has no key '\(component.name)'", keyPath: text)
      }
      indexes.append(index)
      current = destination(of: owner.keys[index], in: owner)
    }
    return ModelKeyPath(text: text, keys: indexes)
  }

  /// How many computed keys may name one another in a row. A bound, because a schema that is being loaded may have
  /// cycles that nobody has found yet.
  private static let maximumComputedDepth = 256

  /// The entity that a key leads to, nil where its value is no reference.
  func destination(of key: Key, in owner: Entity, depth: Int = 0) -> Entity? {
    switch key.kind {
    case .attribute: return nil
    case .toOne(let toOne): return entity(named: toOne.destination)
    case .computed(let computed):
      guard depth < Self.maximumComputedDepth,
        let end = end(of: computed.path, from: owner, depth: depth + 1)
      else { return nil }
      return destination(of: end.key, in: end.owner, depth: depth + 1)
    }
  }

  /// The last key of a path, and the entity that has it.
  func end(of path: [Int], from entity: Entity, depth: Int = 0) -> (key: Key, owner: Entity)? {
    var owner = entity
    for index in path.dropLast() {
      guard owner.keys.indices.contains(index),
        let next = destination(of: owner.keys[index], in: owner, depth: depth)
      else { return nil }
      owner = next
    }
    guard let last = path.last, owner.keys.indices.contains(last) else { return nil }
    return (owner.keys[last], owner)
  }

  /// Whether the values of a resolved path are references.
  public func leadsToObject(_ path: ModelKeyPath, from entity: Entity) -> Bool {
    guard let end = end(of: path.keys, from: entity) else { return false }
    return destination(of: end.key, in: end.owner) != nil
  }
}
