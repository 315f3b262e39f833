/// A named property of an entity.
public struct Key: Sendable {
  /// What a key is.
  public enum Kind: Sendable {
    /// It holds a value.
    case attribute(Attribute)
    /// It names another object, or none.
    case toOne(ToOne)
    /// It is worked out from other keys.
    case computed(ComputedKey)
  }

  /// When setting a key notifies (KVO guide, "Automatic Change Notification" and "Manual Change Notification").
  public enum Notifying: String, Hashable, Sendable, CaseIterable {
    /// Whenever it is set, also to an equal value.
    case always
    /// When it is set to another value.
    case changed
    /// Only where a transaction brackets it with `willChange` and `didChange`.
    case manual
  }

  /// Its name in the schema and in JSON.
  public let name: String
  /// What it is.
  public internal(set) var kind: Kind
  /// Whether it may be null. Always true of computed keys.
  public let isOptional: Bool
  /// When setting it notifies.
  public let notifying: Notifying
  /// Where the value stands in an object's record; nil for computed keys. The same in every subclass.
  public let storage: Int?
}

/// A relationship to at most one object.
public struct ToOne: Sendable {
  /// What becomes of the other side when the object that holds the key is deleted (Core Data's delete rules).
  public enum DeleteRule: String, Hashable, Sendable, CaseIterable {
    /// The other side forgets the object.
    case nullify
    /// The other side is deleted too.
    case cascade
    /// There is no deletion while the other side is there.
    case deny
  }

  /// The entity of the object on the other side, or a parent of it.
  public let destination: String
  /// The key on the other side that names this one, kept consistent.
  public let inverse: String?
  /// What becomes of the other side at a deletion.
  public let deleteRule: DeleteRule
  /// Where `inverse` stands among the destination's keys.
  public internal(set) var inverseIndex: Int?
}

/// A read-only key whose value is found by following a key path from the object.
public struct ComputedKey: Sendable {
  /// The path as written in the schema.
  public let text: String
  /// The type that the schema states for the value, where it does.
  public let declaredType: AttributeType?
  /// The path, as indexes among the keys of the entities along it.
  public internal(set) var path: [Int] = []
  /// What else makes the key notify: the paths of the same key in parents (KVO guide, "Registering Dependent Keys").
  public internal(set) var inheritedPaths: [[Int]] = []
}
