/// A key path that has been resolved in the schema: keys joined by dots, from an object of one entity, with at most one
/// collection operator.
///
/// Immutable, and a class only because it is copied with every change that is notified: a copy counts one reference
/// instead of six.
public final class ModelKeyPath: Hashable, Sendable {
  /// The path as it was written; what events and answers call it.
  public let text: String
  /// The index of each key among the keys of the entity reached so far, up to the operator where there is one.
  public let keys: [Int]
  /// The operator, and what stands behind it.
  public let operation: CollectionOperation?
  /// What its values are.
  public let type: ValueType
  /// What its value is read from.
  package let reads: KeyTree
  /// Why changes of its value cannot be observed: the path goes on behind a collection, which it may only read.
  let unobservable: String?
  /// Whether its operator reads members of a computed list: nothing follows them, so no computed key can be made of it.
  let isBehindComputedList: Bool

  /// The most keys that a path may have.
  public static let maximumLength = 32

  init(
    text: String, keys: [Int], operation: CollectionOperation?, type: ValueType, reads: KeyTree,
    unobservable: String?, isBehindComputedList: Bool = false
  ) {
    self.text = text
    self.keys = keys
    self.operation = operation
    self.type = type
    self.reads = reads
    self.unobservable = unobservable
    self.isBehindComputedList = isBehindComputedList
  }

  /// The keys that it names, those behind its operator included.
  package var named: KeyTree { KeyTree(path: keys + (operation?.memberKeys ?? [])) }

  /// Equal when they were written alike and name the same keys.
  public static func == (left: ModelKeyPath, right: ModelKeyPath) -> Bool {
    left === right || left.text == right.text && left.keys == right.keys && left.operation == right.operation
  }

  /// Feeds what equality looks at.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(text)
    hasher.combine(keys)
  }
}

extension Schema {
  /// Resolves a key path from objects of `entity`. What it may name is decided from the schema alone: a key that only a
  /// subclass has is undefined behind a to-one of its parent.
  ///
  /// Throws `malformed-key-path`, `undefined-key`, `not-a-collection` for an operator where there is no collection, and
  /// `invalid-value` for an operator that cannot take the members' values.
  public func resolve(_ text: String, from entity: Entity) throws(ModelError) -> ModelKeyPath {
    if let index = entity.indexOfKey(text), index < entity.keyPaths.count, let path = entity.keyPaths[index] {
      return path
    }
    return try KeyPathResolution(schema: self, text: text, entity: entity).resolve()
  }

  /// Resolves a key path that is to be observed: as `resolve`, and `unobservable-key-path` for one that goes on behind
  /// a collection without an operator.
  public func resolveObservable(_ text: String, from entity: Entity) throws(ModelError) -> ModelKeyPath {
    let path = try resolve(text, from: entity)
    if let reason = path.unobservable { throw ModelError(.unobservableKeyPath, reason, keyPath: text) }
    return path
  }

  /// What a key's value is; nil for a computed key that is not resolved yet.
  public func type(of key: Key) -> ValueType? {
    key.valueType ?? (isLenient ? .attribute(.json) : nil)
  }

  /// The entity that a key leads to, be it one object or the members of a collection; nil where its values are none.
  package func destination(of key: Key) -> Entity? {
    guard case .object(let name)? = type(of: key)?.innermost else { return nil }
    return entity(named: name)
  }

  /// Whether the values of a resolved path are references.
  public func leadsToObject(_ path: ModelKeyPath) -> Bool {
    if case .object = path.type { return true }
    return false
  }
}
