/// Finds the differences between two schemas and describes each in a clause.
struct SchemaComparison {
  private let plan: MigrationPlan

  init(_ plan: MigrationPlan) { self.plan = plan }

  /// All differences in the order of the new schema; removed entities come last.
  func changes() -> [SchemaChange] {
    var changes: [SchemaChange] = []
    for entity in plan.new.entities {
      guard let source = plan.plan(for: entity) else {
        changes.append(SchemaChange(entity: entity.name, key: nil, change: "is new"))
        continue
      }
      changes += clauses(entity, source).map { SchemaChange(entity: entity.name, key: nil, change: $0) }
      let declared = declaredKeys(of: entity)
      for (index, key) in entity.keys.enumerated() {
        // An entity may have rules for a key that it inherits.
        let found = (declared.contains(index) ? clauses(key, source) : []) + ruleClauses(index, entity, source)
        changes += found.map { SchemaChange(entity: entity.name, key: key.name, change: $0) }
      }
      changes += removedKeys(entity, source)
    }
    for source in plan.entities where source.new == nil {
      changes.append(SchemaChange(entity: source.name, key: nil, change: "is gone"))
    }
    return changes
  }

  // MARK: Entities

  private func clauses(_ entity: Entity, _ source: MigrationPlan.EntityPlan) -> [String] {
    var clauses: [String] = []
    if source.old.name != entity.name { clauses.append("was \(source.old.name)") }
    let parent = source.old.parent.map { name in plan.entities.first { $0.old.name == name }?.name ?? name }
    if parent != entity.parent {
      if let parent { clauses.append("no longer extends \(parent); fetches of \(parent) no longer return its objects") }
      if let parent = entity.parent { clauses.append("extends \(parent); fetches of \(parent) return its objects too") }
    }
    let (before, after) = (Self.declaredDisplay(of: source.old), Self.declaredDisplay(of: entity))
    if before != after {
      clauses.append("is displayed by \(after?.joined(separator: ", ") ?? "all keys that are not to-many")")
    }
    let (former, present) = (source.old.rules.actions, entity.rules.actions)
    return clauses
      + AccessRules.Action.allCases.flatMap { Self.ruleClauses("\($0)", former[$0], present[$0]) }
  }

  /// Describes a rule that was added, changed or removed.
  private static func ruleClauses(_ name: String, _ before: AccessRule?, _ after: AccessRule?) -> [String] {
    guard before?.text != after?.text else { return [] }
    return [after.map { "has the access rule \(name): \($0.text)" } ?? "has no access rule for \(name) any more"]
  }

  /// The key paths that a cell shows by default, as the schema declares them; nil if they are all keys that are not
  /// to-many.
  private static func declaredDisplay(of entity: Entity) -> [String]? {
    let display = entity.display.map(\.text)
    return display == entity.keys.filter { !$0.isToMany }.map(\.name) ? nil : display
  }

  /// The keys that an entity declares itself, including computed keys that it redeclares.
  private func declaredKeys(of entity: Entity) -> [Int] {
    let inherited = entity.parent.flatMap(plan.new.entity(named:))?.keys ?? []
    return entity.keys.indices.filter { index in
      guard index < inherited.count else { return true }
      guard case .computed(let own) = entity.keys[index].kind, case .computed(let other) = inherited[index].kind else {
        return false
      }
      return own.text != other.text
    }
  }

  /// The changes for keys of the old schema that the new one lacks, each in the entity that declared the key.
  private func removedKeys(_ entity: Entity, _ source: MigrationPlan.EntityPlan) -> [SchemaChange] {
    let names = plan.names.entities[source.old.index]
    let inherited = source.old.parent.flatMap(plan.old.entity(named:))?.keys.count ?? 0
    return source.old.keys.indices.compactMap { index in
      let key = source.old.keys[index]
      let name = names.keys[index] ?? key.name
      guard entity.indexOfKey(name) == nil else { return nil }
      // A key that the parent lost too is reported for the parent.
      if index < inherited, let parent = source.old.parent.flatMap(plan.old.entity(named:)),
        plan.entities[parent.index].new.map({ $0.indexOfKey(name) == nil }) ?? false
      {
        return nil
      }
      return SchemaChange(
        entity: entity.name, key: name, change: key.storage == nil ? "is gone; it was computed" : "is gone")
    }
  }

  // MARK: Keys

  private func clauses(_ key: Key, _ source: MigrationPlan.EntityPlan) -> [String] {
    let names = plan.names.entities[source.old.index]
    let candidates = names.keys.indices.filter { names.keys[$0] == key.name }
    let isSameSort: (Int) -> Bool = { (source.old.keys[$0].storage == nil) == (key.storage == nil) }
    if let index = candidates.first(where: isSameSort) {
      let before = source.old.keys[index]
      let renaming = before.name == key.name ? [] : ["was \(before.name)"]
      return renaming + KeyComparison(before: before, key: key, destinationName: destinationName(before)).clauses()
    }
    guard let other = candidates.first.map({ source.old.keys[$0] }) else { return [novelty(of: key)] }
    return other.storage == nil
      ? ["was computed and is stored now; its computed values are not kept", novelty(of: key)]
      : ["was stored and is computed now"]
  }

  /// Describes the rules of a key that differ. A new key has no old rules.
  private func ruleClauses(_ index: Int, _ entity: Entity, _ source: MigrationPlan.EntityPlan) -> [String] {
    let names = plan.names.entities[source.old.index]
    let former = names.keys.firstIndex(of: entity.keys[index].name).flatMap { source.old.rules.keys[$0] }
    let present = entity.rules.keys[index]
    return Self.ruleClauses("read", former?.read, present?.read)
      + Self.ruleClauses("update", former?.update, present?.update)
      + Self.ruleClauses("inverse", former?.inverse, present?.inverse)
  }

  /// The present name of a relationship's old destination.
  private func destinationName(_ key: Key) -> String? {
    key.relationship.map { relationship in
      plan.old.entity(named: relationship.destination).map { plan.entities[$0.index].name } ?? relationship.destination
    }
  }

  /// Describes the first values of a key that has no old values.
  private func novelty(of key: Key) -> String {
    switch key.kind {
    case .computed: return "is new and computed"
    case .attribute(let attribute):
      if let value = attribute.defaultValue { return "is new, and \(value.json) in all objects" }
      return key.isOptional ? "is new, and null in all objects" : "is new and must have a value"
    case .toOne(let toOne):
      if let source = source(of: toOne.destination, toOne.inverse) { return "is new, and filled from \(source)" }
      return key.isOptional ? "is new, and null in all objects" : "is new and must have a value"
    case .toMany(let toMany):
      if let source = source(of: toMany.destination, toMany.inverse) { return "is new, and filled from \(source)" }
      return "is new, and empty in all objects"
    }
  }

  /// The other side of a relationship, if it has old values.
  private func source(of destination: String?, _ inverse: String?) -> String? {
    guard let destination, let inverse, let entity = plan.new.entity(named: destination),
      let column = entity.indexOfKey(inverse).flatMap({ plan.column(ofKey: $0, in: entity) })
    else { return nil }
    if case .fresh = column.source { return nil }
    return "\(destination).\(inverse)"
  }
}

/// Finds the differences between two declarations of one key and describes each in a clause.
private struct KeyComparison {
  let before: Key
  let key: Key
  /// The present name of the old key's destination.
  let destinationName: String?

  /// Describes the differences.
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
        key.isOrdered ? "is ordered, initially as its members were sorted before" : "is no longer ordered")
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

/// One way in which a new schema differs from an old one, for the log of a start.
package struct SchemaChange: Hashable, Sendable, CustomStringConvertible {
  /// The entity's new name, or its old name if it is removed.
  package let entity: String
  /// The key, if the change is about one.
  package let key: String?
  /// The difference, as a clause: `is new, and null in all objects`.
  package let change: String

  /// The place and the change on one line: `Account.note is new, and null in all objects`.
  package var description: String { "\(key.map { "\(entity).\($0)" } ?? entity) \(change)" }
}
