/// The rules for the objects of one entity, those of its parents and of the schema included where it has none itself.
package struct AccessRules: Sendable {
  /// What a rule may allow.
  package enum Action: String, Hashable, Sendable, CaseIterable {
    case read, create, update, delete

    /// What a rule for it sees.
    var scope: AccessRule.Scope { self == .update ? .change : .object }
  }

  /// The rules of one key.
  struct KeyRules: Sendable {
    var read: AccessRule?
    var update: AccessRule?
    /// Asked in place of `update`, of the object and of the key, when a write changes the key through its inverse.
    var inverse: AccessRule?
  }

  /// The rules that there are.
  var actions: [Action: AccessRule] = [:]
  /// The rules of keys, by their indexes.
  var keys: [Int: KeyRules] = [:]

  /// No rules.
  package init() {}

  /// What the read rule reads of an object, whose change may make it readable or not.
  package var reads: KeyTree { actions[.read]?.reads ?? KeyTree() }

  /// What reading asks of who asks.
  var identityReads: IdentityReads {
    var reads = actions[.read]?.identityReads ?? IdentityReads()
    for rules in keys.values { rules.read.map { reads.merge($0.identityReads) } }
    return reads
  }
}
