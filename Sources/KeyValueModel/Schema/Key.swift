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

  /// What it holds, where it is an attribute.
  var attribute: Attribute? {
    if case .attribute(let attribute) = kind { return attribute }
    return nil
  }

  /// The other side of a relationship, nil for everything else.
  var relationship: (destination: String, inverse: String?, inverseIndex: Int?, deleteRule: DeleteRule)? {
    switch kind {
    case .toOne(let toOne): return (toOne.destination, toOne.inverse, toOne.inverseIndex, toOne.deleteRule)
    case .toMany(let toMany):
      guard let destination = toMany.destination else { return nil }
      return (destination, toMany.inverse, toMany.inverseIndex, toMany.deleteRule)
    case .attribute, .computed: return nil
    }
  }

  /// What a create fills in: the default, or null; for a collection no members.
  package var defaultValue: Value {
    switch kind {
    case .attribute(let attribute): attribute.defaultValue ?? .null
    case .toMany(let toMany): .members(MemberList(isOrdered: toMany.isOrdered))
    case .toOne, .computed: .null
    }
  }

  /// What a new object holds before its keys are set.
  var emptyValue: Value {
    if case .toMany = kind { return defaultValue }
    return .null
  }
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

/// A read-only key whose value is found by following a key path from the object, or by an expression over its keys.
public struct ComputedKey: Sendable {
  /// How the value is found.
  enum Formula: Sendable {
    /// By key-value coding.
    case path(ModelKeyPath)
    /// By a CEL expression.
    case expression(KeyExpression)
  }

  /// The path or expression as written in the schema.
  public let text: String
  /// The type that the schema states for the value, where it does.
  public let declaredType: AttributeType?
  /// How the value is found; nil only while the schema is being compiled.
  private(set) var formula: Formula?
  /// What the value is: of the declared type, where what the formula gives can be made one of it.
  public private(set) var type: ValueType?
  /// The declared type where what the formula gives may be of another: the value is then made one of it, or null.
  private(set) var conversion: AttributeType?
  /// What the value is read from.
  package private(set) var reads = KeyTree()
  /// What else makes the key notify: what the same key reads in parents (KVO guide, "Registering Dependent Keys").
  var inheritedReads: [KeyTree] = []
  /// Everything whose change notifies of the key.
  package var notifyingReads: [KeyTree] { [reads] + inheritedReads }

  /// The value is found so from now on.
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
    // Sums and unsigned integers go beyond the integers of 64 bits.
    let mayOverflow =
      switch formula {
      case .path(let path): path.operation?.function == .sum && declaredType == .integer
      case .expression(let expression): expression.isUnsigned
      }
    conversion = isConverted || mayOverflow ? declaredType : nil
  }

  /// A value in the form of the declared type; nil where it has another one.
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

/// What the values of a key or a key path are, as far as the schema says.
public indirect enum ValueType: Hashable, Sendable {
  /// A value of an attribute type, or null.
  case attribute(AttributeType)
  /// A reference to an object of the entity or of one that extends it, or null.
  case object(String)
  /// A list.
  case list(ValueType)

  /// The type of the elements, for a list.
  public var element: ValueType? {
    if case .list(let element) = self { return element }
    return nil
  }

  /// What is found when every list is opened.
  var innermost: ValueType {
    if case .list(let element) = self { return element.innermost }
    return self
  }

  /// This type in as many lists as `other` is.
  func nested(like other: ValueType) -> ValueType {
    if case .list(let element) = other { return .list(nested(like: element)) }
    return self
  }

  /// A noun with its article, for sentences.
  var article: String {
    switch self {
    case .attribute(let type): type.article
    case .object(let entity): "a reference to \(entity)"
    case .list: "a list"
    }
  }
}
