/// A named property of an entity.
public struct Key: Sendable {
  /// What a key is.
  public enum Kind: Sendable {
    /// It holds a value.
    case attribute(Attribute)
    /// It names another object, or none.
    case toOne(ToOne)
    /// It names any number of objects, or holds any number of values.
    case toMany(ToMany)
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
  /// Whether it may be null. Always true of computed keys, never of collections.
  public let isOptional: Bool
  /// When setting it notifies.
  public let notifying: Notifying
  /// Whether objects are found by its value without looking at all of them.
  public let isIndexed: Bool
  /// Where the value stands in an object's record; nil for computed keys. The same in every subclass.
  public let storage: Int?
}

/// What becomes of the other side of a relationship when the object that holds the key is deleted (Core Data's delete
/// rules).
public enum DeleteRule: String, Hashable, Sendable, CaseIterable {
  /// The other side forgets the object.
  case nullify
  /// The other side is deleted too.
  case cascade
  /// There is no deletion while the other side is there.
  case deny
}

/// A relationship to at most one object.
public struct ToOne: Sendable {
  /// The entity of the object on the other side, or a parent of it.
  public let destination: String
  /// The key on the other side that names this one, kept consistent.
  public let inverse: String?
  /// What becomes of the other side at a deletion.
  public let deleteRule: DeleteRule
  /// Where `inverse` stands among the destination's keys.
  public internal(set) var inverseIndex: Int?
}

/// A collection of unique members: a relationship to any number of objects, or any number of values of one type.
public struct ToMany: Sendable {
  /// What the members are.
  public enum Member: Sendable {
    /// Objects of the entity, or of one that extends it.
    case object(entity: String)
    /// Values under these constraints.
    case value(Attribute)
  }

  /// What the members are.
  public let member: Member
  /// Whether the places of the members are chosen, or follow from their values.
  public let isOrdered: Bool
  /// The key on the other side that names this one, kept consistent; never with values.
  public let inverse: String?
  /// What becomes of the members at a deletion.
  public let deleteRule: DeleteRule
  /// Where `inverse` stands among the destination's keys.
  public internal(set) var inverseIndex: Int?

  /// The entity of the members, nil where they are values.
  public var destination: String? {
    if case .object(let entity) = member { return entity }
    return nil
  }

  /// The type of the members.
  public var memberType: ValueType {
    switch member {
    case .object(let entity): .object(entity)
    case .value(let attribute): .attribute(attribute.type)
    }
  }
}

extension Key {
  /// What its value is; nil for a computed key that is not resolved yet.
  var valueType: ValueType? {
    switch kind {
    case .attribute(let attribute): .attribute(attribute.type)
    case .toOne(let toOne): .object(toOne.destination)
    case .toMany(let toMany): .list(toMany.memberType)
    case .computed(let computed): computed.type
    }
  }

  /// The type that the schema states for a computed key, where it does.
  var declaredType: AttributeType? {
    if case .computed(let computed) = kind { return computed.declaredType }
    return nil
  }

  /// Whether it holds a collection.
  public var isToMany: Bool {
    if case .toMany = kind { return true }
    return false
  }
}
