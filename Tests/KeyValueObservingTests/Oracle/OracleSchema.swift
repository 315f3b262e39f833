import KeyValueModel
import Seeding

/// A schema as the oracle knows it: plain lists, from which the YAML for the production code is written.
struct OracleSchema {
  struct Key {
    enum Kind {
      case attribute(defaultValue: Int64?)
      case toOne(String, inverse: String?, rule: String)
      case computed([String])
    }

    let name: String
    var kind: Kind
    var notifies = "always"
    var isOptional = true

    var isStored: Bool { if case .computed = kind { false } else { true } }
  }

  struct Entity {
    let name: String
    var parent: String?
    var ownKeys: [Key] = []
  }

  var entities: [Entity]
  /// By entity and key, once the schema is complete; looking up is most of what the oracle does.
  private var keysByName: [String: [String: Key]] = [:]
  private var pathsByName: [String: [String: [[String]]]] = [:]

  init(entities: [Entity]) {
    self.entities = entities
  }

  func entity(_ name: String) -> Entity? { entities.first { $0.name == name } }

  /// All keys, inherited first; one that is declared anew stands where it was.
  func keys(_ name: String) -> [Key] {
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

  private mutating func complete() {
    for entity in entities {
      let keys = keys(entity.name)
      pathsByName[entity.name] = Dictionary(uniqueKeysWithValues: keys.map { ($0.name, paths(entity.name, $0.name)) })
      keysByName[entity.name] = Dictionary(uniqueKeysWithValues: keys.map { ($0.name, $0) })
    }
  }

  /// What a computed key reads, its own path first, then those of its ancestors' declarations.
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

  /// Where a key leads by the schema alone.
  func destination(_ entity: String, _ name: String) -> String? {
    switch key(entity, name)?.kind {
    case .toOne(let destination, _, _): return destination
    case .computed(let path):
      var current: String? = entity
      for name in path { current = current.flatMap { destination($0, name) } }
      return current
    default: return nil
    }
  }

  var yaml: String {
    var text = "entities:\n"
    for entity in entities {
      text += "  \(entity.name):\n"
      if let parent = entity.parent { text += "    extends: \(parent)\n" }
      text += "    keys:\(entity.ownKeys.isEmpty ? " {}" : "")\n"
      for key in entity.ownKeys { text += "      \(key.name): {\(Self.words(key).joined(separator: ", "))}\n" }
    }
    return text
  }

  private static func words(_ key: Key) -> [String] {
    var words: [String]
    switch key.kind {
    case .attribute(let defaultValue):
      words = ["type: integer"] + (defaultValue.map { ["default: \($0)"] } ?? [])
    case .toOne(let destination, let inverse, let rule):
      words = ["toOne: \(destination)", "delete: \(rule)"] + (inverse.map { ["inverse: \($0)"] } ?? [])
    case .computed(let path): words = ["computed: \(path.joined(separator: "."))"]
    }
    if !key.isOptional { words.append("optional: false") }
    return words + ["notifies: \(key.notifies)"]
  }
}

extension OracleSchema {
  /// A schema of a few entities; with `modes` the words that its keys may have as `notifies`.
  static func random(modes: [String], _ random: inout SplitMix64) -> OracleSchema {
    var schema = OracleSchema(entities: [Entity(name: "A"), Entity(name: "B"), Entity(name: "C", parent: "A")])
    func mode() -> String { modes.randomElement(using: &random) ?? "always" }
    func name() -> String { ["A", "B", "C"].randomElement(using: &random) ?? "A" }
    func rule() -> String {
      ["nullify", "nullify", "nullify", "cascade", "deny"].randomElement(using: &random) ?? "nullify"
    }

    for index in 0..<3 {
      for number in 0..<2 {
        let initial: Int64? = Bool.random(using: &random) ? Int64(number) : nil
        schema.entities[index].ownKeys.append(
          Key(name: "n\(index)\(number)", kind: .attribute(defaultValue: initial), notifies: mode()))
      }
      var key = Key(name: "r\(index)", kind: .toOne(name(), inverse: nil, rule: rule()), notifies: mode())
      key.isOptional = index == 2 ? Int.random(in: 0..<4, using: &random) > 0 : true
      schema.entities[index].ownKeys.append(key)
    }
    schema.entities[0].ownKeys.append(
      Key(name: "mate", kind: .toOne("A", inverse: "mate", rule: rule()), notifies: mode()))
    let far = Int.random(in: 0..<2, using: &random)
    let destination = schema.entities[far].name
    schema.entities[1].ownKeys.append(
      Key(name: "near", kind: .toOne(destination, inverse: "far", rule: rule()), notifies: mode()))
    schema.entities[far].ownKeys.append(
      Key(name: "far", kind: .toOne("B", inverse: "near", rule: rule()), notifies: mode()))
    for number in 0..<6 {
      let owner = Int.random(in: 0..<3, using: &random)
      let path = schema.randomPath(schema.entities[owner].name, upTo: 3, &random)
      schema.add(Key(name: "c\(number)", kind: .computed(path), notifies: mode()), to: owner)
    }
    // A subclass that declares a computed key anew.
    for key in schema.entities[0].ownKeys where !key.isStored && Bool.random(using: &random) {
      schema.add(
        Key(name: key.name, kind: .computed(schema.randomPath("C", upTo: 3, &random)), notifies: mode()), to: 2)
    }
    schema.complete()
    return schema
  }

  /// Adds a computed key unless that makes a schema that is refused: a cycle, for instance.
  private mutating func add(_ key: Key, to entity: Int) {
    var candidate = self
    candidate.entities[entity].ownKeys.append(key)
    if (try? Schema(yaml: candidate.yaml)) != nil { self = candidate }
  }

  /// A path that the schema allows.
  func randomPath(_ entity: String, upTo length: Int, _ random: inout SplitMix64) -> [String] {
    var path: [String] = []
    var current: String? = entity
    for step in 0..<Int.random(in: 1...length, using: &random) {
      guard let owner = current else { break }
      let names = keys(owner).map(\.name)
      // Mostly on through objects, while there is a way.
      let leading = names.filter { destination(owner, $0) != nil }
      let pool = step < length - 1 && Bool.random(using: &random) && !leading.isEmpty ? leading : names
      guard let name = pool.randomElement(using: &random) else { break }
      path.append(name)
      current = destination(owner, name)
    }
    return path
  }
}
