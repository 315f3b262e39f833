/// A named property of an entity.
public struct Key: Sendable {
  /// The kind of a key.
  public enum Kind: Sendable {
    /// A key that holds a value.
    case attribute(Attribute)
    /// A key that refers to one other object or to none.
    case toOne(ToOne)
    /// A key that refers to any number of objects, or holds any number of values.
    case toMany(ToMany)
    /// A key whose value is computed from other keys.
    case computed(ComputedKey)
  }

  /// The condition under which setting a key notifies (KVO guide, "Automatic Change Notification" and "Manual Change
  /// Notification").
  public enum Notifying: String, Hashable, Sendable, CaseIterable {
    /// Every setting notifies, also to an equal value.
    case always
    /// Only setting a different value notifies.
    case changed
    /// A setting notifies only if a transaction brackets it with `willChange` and `didChange`.
    case manual
  }

  /// The name in the schema and in JSON.
  public let name: String
  /// The kind.
  public internal(set) var kind: Kind
  /// True if the value may be null. Always true for computed keys, never for collections.
  public let isOptional: Bool
  /// The condition under which setting the key notifies.
  public let notifying: Notifying
  /// True if an index finds objects by the key's value, without a scan of all objects.
  public let isIndexed: Bool
  /// The place of the value in an object's record; nil for computed keys. The same in every subclass.
  public let storage: Int?

  /// The type of its value; nil for a computed key that is not resolved yet.
  var valueType: ValueType? {
    switch kind {
    case .attribute(let attribute): .attribute(attribute.type)
    case .toOne(let toOne): .object(toOne.destination)
    case .toMany(let toMany): .list(toMany.memberType)
    case .computed(let computed): computed.type
    }
  }

  /// The type that the schema declares for a computed key; nil if it declares none.
  var declaredType: AttributeType? {
    if case .computed(let computed) = kind { return computed.declaredType }
    return nil
  }

  /// True if the key holds a collection.
  public var isToMany: Bool {
    if case .toMany = kind { return true }
    return false
  }

  /// The attribute; nil for all other kinds of keys.
  var attribute: Attribute? {
    if case .attribute(let attribute) = kind { return attribute }
    return nil
  }

  /// The other side of a relationship; nil for all other keys.
  var relationship: (destination: String, inverse: String?, inverseIndex: Int?, deleteRule: DeleteRule)? {
    switch kind {
    case .toOne(let toOne): return (toOne.destination, toOne.inverse, toOne.inverseIndex, toOne.deleteRule)
    case .toMany(let toMany):
      guard let destination = toMany.destination else { return nil }
      return (destination, toMany.inverse, toMany.inverseIndex, toMany.deleteRule)
    case .attribute, .computed: return nil
    }
  }

  /// The value that a create fills in: the default, or null if there is none; for a collection, no members.
  package var defaultValue: Value {
    switch kind {
    case .attribute(let attribute): attribute.defaultValue ?? .null
    case .toMany(let toMany): .members(MemberList(isOrdered: toMany.isOrdered))
    case .toOne, .computed: .null
    }
  }

  /// The value in a new object before its keys are set.
  var emptyValue: Value {
    if case .toMany = kind { return defaultValue }
    return .null
  }
}

/// The effect on the other side of a relationship when the object that holds the key is deleted (Core Data's delete
/// rules).
public enum DeleteRule: String, Hashable, Sendable, CaseIterable {
  /// The other side's reference to the object is removed.
  case nullify
  /// The other side is deleted as well.
  case cascade
  /// The deletion is refused while the other side exists.
  case deny
}

/// A relationship to at most one object.
public struct ToOne: Sendable {
  /// The entity of the object on the other side, or an ancestor of that entity.
  public let destination: String
  /// The key on the other side that refers back and is kept consistent; nil if there is none.
  public let inverse: String?
  /// The effect of a deletion on the other side.
  public let deleteRule: DeleteRule
  /// The index of `inverse` among the destination's keys; nil if there is no inverse, or while the schema is being
  /// compiled.
  public internal(set) var inverseIndex: Int?
}

/// A collection of unique members: a relationship to any number of objects, or any number of values of one type.
public struct ToMany: Sendable {
  /// The kind of the members.
  public enum Member: Sendable {
    /// Objects of the entity, or of one that extends it.
    case object(entity: String)
    /// Values under these constraints.
    case value(Attribute)
  }

  /// The members' entity, or their attribute.
  public let member: Member
  /// True if the caller chooses the positions of the members; false if the positions follow from their values.
  public let isOrdered: Bool
  /// The key on the other side that refers back and is kept consistent; nil if there is none, and always for values.
  public let inverse: String?
  /// The effect of a deletion on the members.
  public let deleteRule: DeleteRule
  /// The index of `inverse` among the destination's keys; nil if there is no inverse, or while the schema is being
  /// compiled.
  public internal(set) var inverseIndex: Int?

  /// The entity of the members; nil if they are values.
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

/// A read-only key whose value is computed by following a key path from the object, or by an expression over its keys.
public struct ComputedKey: Sendable {
  /// The formula of the value.
  enum Formula: Sendable {
    /// A key path, followed by key-value coding.
    case path(ModelKeyPath)
    /// A CEL expression.
    case expression(KeyExpression)
  }

  /// The path or expression as written in the schema.
  public let text: String
  /// The type that the schema declares for the value; nil if it declares none.
  public let declaredType: AttributeType?
  /// The formula of the value; nil only while the schema is being compiled.
  private(set) var formula: Formula?
  /// The type of the value: the declared type if the formula's result can be converted to it, otherwise the type of the
  /// formula. Nil only while the schema is being compiled.
  public private(set) var type: ValueType?
  /// The declared type if the formula's result may have another one: the result is converted to it, or is null if that
  /// is impossible. Nil if no conversion is needed.
  private(set) var conversion: AttributeType?
  /// The keys that the value is read from.
  package private(set) var reads = KeyTree()
  /// The keys that the same key reads in ancestors: their changes notify of this key, too (KVO guide, "Registering
  /// Dependent Keys").
  var inheritedReads: [KeyTree] = []
  /// All keys whose change notifies of this key.
  package var notifyingReads: [KeyTree] { [reads] + inheritedReads }

  /// Sets the formula, and derives the type and the keys read from it.
  mutating func resolve(to formula: Formula) {
    self.formula = formula
    reads = formula.reads
    type = formula.type
    guard let declaredType, declaredType != .json else { return }
    let isConverted =
      switch (declaredType, formula.type) {
      case (_, .attribute(.json)), (.number, .attribute(.integer)): true
      default: false
      }
    if isConverted { type = .attribute(declaredType) }
    // Sums and unsigned integers can exceed the integers of 64 bits.
    let mayOverflow =
      switch formula {
      case .path(let path): path.operation?.function == .sum && declaredType == .integer
      case .expression(let expression): expression.isUnsigned
      }
    conversion = isConverted || mayOverflow ? declaredType : nil
  }

  /// Returns a value in the form of the declared type, or nil if it cannot be converted.
  func converting(_ value: Value) -> Value? {
    guard let conversion, !value.isNull else { return value }
    return try? Attribute(type: conversion).accepting(value)
  }
}

extension ComputedKey.Formula {
  fileprivate var reads: KeyTree {
    switch self {
    case .path(let path): path.reads
    case .expression(let expression): expression.reads
    }
  }

  var type: ValueType {
    switch self {
    case .path(let path): path.type
    case .expression(let expression): expression.type
    }
  }
}

/// The type of the values of a key or a key path, as far as the schema determines it.
public indirect enum ValueType: Hashable, Sendable {
  /// A value of an attribute type, or null.
  case attribute(AttributeType)
  /// A reference to an object of the entity or of one that extends it, or null.
  case object(String)
  /// A list.
  case list(ValueType)

  /// The type of the elements of a list; nil for all other types.
  public var element: ValueType? {
    if case .list(let element) = self { return element }
    return nil
  }

  /// The type of the elements of the innermost list, or the type itself if it is not a list.
  var innermost: ValueType {
    if case .list(let element) = self { return element.innermost }
    return self
  }

  /// Returns this type nested in as many lists as `other` is.
  func nested(like other: ValueType) -> ValueType {
    if case .list(let element) = other { return .list(nested(like: element)) }
    return self
  }

  /// A noun with its article, for messages.
  var article: String {
    switch self {
    case .attribute(let type): type.article
    case .object(let entity): "a reference to \(entity)"
    case .list: "a list"
    }
  }
}
