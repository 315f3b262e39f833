import KeyValueModel

/// A relationship of one object as a line gives it, with at least one object on the other side.
struct ImportLink: Hashable, Sendable {
  /// What it is held back under: an object's key has one value.
  struct Name: Hashable, Sendable {
    var owner: Reference
    var key: String
  }

  var line: Int
  var owner: Reference
  var key: String
  /// The objects that it names, in order.
  var targets: [Reference]
  /// Whether it is a to-many, which is set as a whole.
  var isToMany = false
  /// Whether its object cannot be made without it.
  var isRequired = false
  /// The key on the other side that the server keeps consistent.
  var inverse: String?

  /// What it is held back under.
  var name: Name { Name(owner: owner, key: key) }

  var value: Value {
    if isToMany { return .array(targets.map(Value.reference)) }
    return targets.first.map(Value.reference) ?? .null
  }
}
