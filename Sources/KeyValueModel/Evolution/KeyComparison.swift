/// Finds the differences between two declarations of one key and says each in a clause.
struct KeyComparison {
  let before: Key
  let key: Key
  /// Where the old one led to, by the present name of the entity.
  let destinationName: String?

  init(_ before: Key, _ key: Key, destinationName: String?) {
    self.before = before
    self.key = key
    self.destinationName = destinationName
  }

  /// What is different.
  func clauses() -> [String] {
    var clauses: [String] = []
    if case .computed(let old) = before.kind, case .computed(let new) = key.kind {
      if old.text != new.text { clauses.append("is computed as \(new.text)") }
      if old.declaredType != new.declaredType {
        clauses.append("is declared as \(new.declaredType?.rawValue ?? "any type")")
      }
    }
    if let old = before.shape, let new = key.shape, old != new { clauses.append("changes from \(old) to \(new)") }
    clauses += attributeClauses() + relationshipClauses()
    if before.isOptional != key.isOptional, before.isToMany == key.isToMany {
      clauses.append(key.isOptional ? "may be null" : "must have a value")
    }
    if before.notifying != key.notifying { clauses.append("notifies \(key.notifying.rawValue)") }
    if before.isIndexed != key.isIndexed { clauses.append(key.isIndexed ? "is indexed" : "is no longer indexed") }
    return clauses
  }

  private func attributeClauses() -> [String] {
    guard let new = key.valueAttribute else { return [] }
    guard let old = before.valueAttribute else { return [] }
    var clauses: [String] = []
    func compare(_ name: String, _ old: String?, _ new: String?) {
      guard old != new else { return }
      clauses.append(new.map { "has \(name) \($0)" } ?? "has no \(name) any more")
    }
    compare("minimum", old.minimum?.json, new.minimum?.json)
    compare("maximum", old.maximum?.json, new.maximum?.json)
    compare("minLength", old.minLength.map(String.init), new.minLength.map(String.init))
    compare("maxLength", old.maxLength.map(String.init), new.maxLength.map(String.init))
    compare("pattern", old.pattern?.text, new.pattern?.text)
    compare("enum", old.allowedValues.map(Self.list), new.allowedValues.map(Self.list))
    if old.defaultValue != new.defaultValue {
      let clause = new.defaultValue.map { "has the default \($0.json)" } ?? "has no default any more"
      clauses.append("\(clause); objects keep what they have")
    }
    return clauses
  }

  private static func list(_ values: [Value]) -> String { values.map(\.json).joined(separator: ", ") }

  private func relationshipClauses() -> [String] {
    var clauses: [String] = []
    if before.isToMany, key.isToMany, before.isOrdered != key.isOrdered {
      clauses.append(
        key.isOrdered ? "is ordered, at first as its members come without an order" : "is no longer ordered")
    }
    guard let new = key.relationship, let old = before.relationship else { return clauses }
    if let destinationName, destinationName != new.destination { clauses.append("leads to \(new.destination)") }
    if old.inverse != new.inverse {
      clauses.append(new.inverse.map { "has the inverse \(new.destination).\($0)" } ?? "has no inverse any more")
    }
    if old.deleteRule != new.deleteRule { clauses.append("has the delete rule \(new.deleteRule.rawValue)") }
    return clauses
  }
}
