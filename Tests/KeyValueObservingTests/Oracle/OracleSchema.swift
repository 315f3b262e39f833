import KeyValueModel
import TestKit

/// A schema as the oracle knows it: plain lists, from which the YAML for the production code is written.
struct OracleSchema {
  /// The type of a value.
  indirect enum Sort: Equatable {
    case plain(String)
    case object(String)
    case list(Sort)
  }

  struct Key {
    enum Kind {
      case attribute(String, defaultValue: Value?)
      case toOne(String, inverse: String?, rule: String)
      case toMany(Sort, isOrdered: Bool, inverse: String?, rule: String)
      case computed([String])
    }

    let name: String
    var kind: Kind
    var notifies = "always"
    var isOptional = true
    var isIndexed = false

    var isStored: Bool { if case .computed = kind { false } else { true } }
    var isToMany: Bool { if case .toMany = kind { true } else { false } }
    var isOrdered: Bool { if case .toMany(_, true, _, _) = kind { true } else { false } }

    var relationship: (destination: String, inverse: String?, rule: String)? {
      switch kind {
      case .toOne(let destination, let inverse, let rule): (destination, inverse, rule)
      case .toMany(.object(let destination), _, let inverse, let rule): (destination, inverse, rule)
      default: nil
      }
    }
  }

  struct Entity {
    let name: String
    var parent: String?
    var ownKeys: [Key] = []
  }

  var entities: [Entity]
  /// The keys by entity and name, once the schema is complete. Looking up is most of the oracle's work.
  private var keysByName: [String: [String: Key]] = [:]
  private var keyLists: [String: [Key]] = [:]
  private var pathsByName: [String: [String: [[String]]]] = [:]

  init(entities: [Entity]) {
    self.entities = entities
  }

  func entity(_ name: String) -> Entity? { entities.first { $0.name == name } }

  /// Returns all keys, inherited ones first. A redeclared key stays in its place.
  func keys(_ name: String) -> [Key] {
    if let keys = keyLists[name] { return keys }
    guard let entity = entity(name) else { return [] }
    var keys = entity.parent.map(self.keys) ?? []
    for key in entity.ownKeys {
      if let index = keys.firstIndex(where: { $0.name == key.name }) { keys[index] = key } else { keys.append(key) }
    }
    return keys
  }

  func key(_ entity: String, _ name: String) -> Key? {
    if let keys = keysByName[entity] { return keys[name] }
    return keys(entity).first { $0.name == name }
  }

  mutating func complete() {
    for entity in entities {
      let keys = keys(entity.name)
      pathsByName[entity.name] = Dictionary(uniqueKeysWithValues: keys.map { ($0.name, paths(entity.name, $0.name)) })
      keysByName[entity.name] = Dictionary(uniqueKeysWithValues: keys.map { ($0.name, $0) })
      keyLists[entity.name] = keys
    }
  }

  /// Returns the paths that a computed key reads: its own first, then those of its ancestors' declarations.
  func paths(_ entity: String, _ name: String) -> [[String]] {
    if let paths = pathsByName[entity] { return paths[name] ?? [] }
    var paths: [[String]] = []
    var current: String? = entity
    while let owner = current.flatMap(self.entity) {
      if let key = owner.ownKeys.first(where: { $0.name == name }), case .computed(let path) = key.kind {
        paths.append(path)
      }
      current = owner.parent
    }
    return paths
  }

  func isKind(_ name: String, of wanted: String) -> Bool {
    name == wanted || entity(name)?.parent.map { isKind($0, of: wanted) } == true
  }

  // MARK: Types of values

  /// Returns the type of a key's value, by the schema alone.
  func sort(_ entity: String, _ name: String) -> Sort? {
    switch key(entity, name)?.kind {
    case .attribute(let type, _): .plain(type)
    case .toOne(let destination, _, _): .object(destination)
    case .toMany(let member, _, _, _): .list(member)
    case .computed(let path): sort(entity, path: path)
    case nil: nil
    }
  }

  func sort(_ entity: String, path: [String]) -> Sort? {
    var current: Sort = .object(entity)
    for (index, name) in path.enumerated() {
      if name.hasPrefix("@") {
        guard case .list(let element) = current else { return nil }
        return folded(name, element, Array(path[(index + 1)...]))
      }
      guard let next = behind(current, name) else { return nil }
      current = next
    }
    return current
  }

  private func behind(_ sort: Sort, _ name: String) -> Sort? {
    switch sort {
    case .plain: nil
    case .object(let entity): self.sort(entity, name)
    case .list(let element): behind(element, name).map(Sort.list)
    }
  }

  private func folded(_ operation: String, _ element: Sort, _ right: [String]) -> Sort? {
    var member = element
    if !right.isEmpty, right != ["self"] {
      guard case .object(let entity) = element, let found = sort(entity, path: right) else { return nil }
      member = found
    }
    switch operation {
    case "@count": return .plain("integer")
    // No sums of averages: binary fractions add up exactly in whatever order, thirds do not.
    case "@avg": return .plain("average")
    case "@sum", "@min", "@max": return member
    case "@unionOfObjects", "@distinctUnionOfObjects": return .list(member)
    default:
      guard case .list = member else { return nil }
      return member
    }
  }

  // MARK: YAML

  var yaml: String {
    var text = "entities:\n"
    for entity in entities {
      text += "  \(entity.name):\n"
      if let parent = entity.parent { text += "    extends: \(parent)\n" }
      text += "    keys:\(entity.ownKeys.isEmpty ? " {}" : "")\n"
      for key in entity.ownKeys {
        text += "      \(key.name): {\(words(key, of: entity.name).joined(separator: ", "))}\n"
      }
    }
    return text
  }

  /// Returns true if a path reads a date, which an expression would convert to UTC. Also true for a cycle, which the
  /// schema under test has to refuse.
  private func readsDate(_ entity: String, _ path: [String], depth: Int = 0) -> Bool {
    guard depth < 20 else { return true }
    var owner = entity
    for name in path where !name.hasPrefix("@") && name != "self" {
      switch key(owner, name)?.kind {
      case .attribute("date", _), .toMany(.plain("date"), _, _, _): return true
      case .toOne(let destination, _, _), .toMany(.object(let destination), _, _, _): owner = destination
      case .computed(let inner):
        if readsDate(owner, inner, depth: depth + 1) { return true }
        if case .object(let destination)? = sort(owner, name) { owner = destination }
      default: break
      }
    }
    return false
  }

  /// Returns a CEL expression that is equivalent to the path of a computed key, for every other key and if CEL can
  /// express it. No observation may depend on the form.
  private func expression(_ key: Key, _ path: [String], of entity: String) -> String? {
    guard let number = key.name.last?.wholeNumberValue, number.isMultiple(of: 2) else { return nil }
    if readsDate(entity, path) { return nil }
    guard let position = path.firstIndex(where: { $0.hasPrefix("@") }) else {
      return "this." + path.joined(separator: ".")
    }
    let list = "this." + path[..<position].joined(separator: ".")
    let member = path[(position + 1)...]
    if path[position] == "@count" { return "size(\(list))" }
    guard let function = ["@sum": "sum", "@avg": "avg", "@min": "min", "@max": "max"][path[position]] else {
      return nil
    }
    // A null on a member's path makes its value null in a key path, but fails in an expression.
    guard member.count == 1, let name = member.first else { return nil }
    return name == "self" ? "\(function)(\(list))" : "\(function)(\(list).map(m, m.\(name)))"
  }

  private func words(_ key: Key, of entity: String) -> [String] {
    var words: [String]
    switch key.kind {
    case .attribute(let type, let defaultValue):
      words = ["type: \(type)"] + (defaultValue.map { ["default: \($0.json)"] } ?? [])
    case .toOne(let destination, let inverse, let rule):
      words = ["toOne: \(destination)", "delete: \(rule)"] + (inverse.map { ["inverse: \($0)"] } ?? [])
    case .toMany(.object(let destination), let isOrdered, let inverse, let rule):
      words = ["toMany: \(destination)", "ordered: \(isOrdered)", "delete: \(rule)"]
      if let inverse { words.append("inverse: \(inverse)") }
    case .toMany(.plain(let type), let isOrdered, _, _): words = ["toMany: \(type)", "ordered: \(isOrdered)"]
    case .toMany(.list, _, _, _): words = []
    case .computed(let path):
      words = ["computed: \"\(expression(key, path, of: entity) ?? path.joined(separator: "."))\""]
    }
    if !key.isOptional { words.append("optional: false") }
    if key.isIndexed { words.append("indexed: true") }
    return words + ["notifies: \(key.notifies)"]
  }
}
