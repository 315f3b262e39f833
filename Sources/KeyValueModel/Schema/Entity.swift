import CEL
import Support

/// A named kind of object: its keys, inherited ones first. Immutable once the schema is loaded.
public final class Entity: Sendable {
  /// Its name, the part of a reference before the slash.
  public let name: String
  /// Where it stands in the schema.
  public let index: Int
  /// The entity whose keys it inherits.
  public let parent: String?
  /// Its own name and those of all its ancestors.
  public let lineage: Set<String>
  /// All keys; a key stands at the same index in every subclass.
  public let keys: [Key]
  /// The key paths that a cell observes that names none, with their resolution.
  public let display: [ModelKeyPath]
  /// The key path of each key alone, by the key's index: what most requests name. Empty while a schema is compiled.
  let keyPaths: [ModelKeyPath?]
  /// How many values an object's record has.
  public let storageCount: Int

  /// Where an object's record holds relationships that the other side does not know of.
  let referenceStorage: [Int]
  /// The keys by whose values objects are found, with where a record holds them.
  let indexedKeys: [(key: Int, storage: Int)]
  /// What the record of a new object holds.
  let emptyValues: [Value]
  /// True where a key is a to-many.
  let hasCollections: Bool
  /// Whether any key is computed.
  let hasComputedKeys: Bool
  /// How a record knows when a key was set that computed keys of other objects read.
  let farKeeping: FarKeeping
  /// The keys once more, laid out for reading.
  let layout: RecordLayout
  /// Who may do what with its objects.
  package let rules: AccessRules
  private let names: NameTable

  init(
    name: String, index: Int, parent: String?, lineage: Set<String>, keys: [Key], display: [ModelKeyPath],
    keyPaths: [ModelKeyPath?] = [], rules: AccessRules = AccessRules(), farKeys: Set<Int> = []
  ) {
    self.name = name
    self.index = index
    self.parent = parent
    self.lineage = lineage
    self.keys = keys
    self.display = display
    self.keyPaths = keyPaths
    self.rules = rules
    emptyValues = keys.compactMap { $0.storage == nil ? nil : $0.emptyValue }
    storageCount = emptyValues.count
    layout = RecordLayout(keys: keys, farKeys: farKeys)
    farKeeping = FarKeeping(farCount: farKeys.count, of: storageCount)
    hasCollections = keys.contains(where: \.isToMany)
    hasComputedKeys = storageCount < keys.count
    referenceStorage = keys.compactMap { $0.relationship.map { $0.inverse == nil } ?? false ? $0.storage : nil }
    indexedKeys = keys.indices.compactMap { key in
      keys[key].isIndexed ? keys[key].storage.map { (key, $0) } : nil
    }
    names = NameTable(keys.map(\.name))
  }

  /// Where a key stands, or nil where there is no key of this name.
  public func indexOfKey(_ name: String) -> Int? {
    names.index(of: name)
  }

  /// What is said about a name that no key has, with the nearest that one has.
  package func undefined(_ name: String) -> String {
    "\(self.name) has no key '\(name)'\(NearestName.hint(for: name, among: keys.map(\.name)))"
  }

  /// Whether the key at an index is an attribute.
  package func isAttribute(_ key: Int) -> Bool { layout.columns[key].type != nil }

  /// When setting the key at an index notifies.
  package func notifying(_ key: Int) -> Key.Notifying { layout.columns[key].notifying }

  /// Whether objects of this entity may stand where `entity` is wanted: it is that entity or extends it.
  public func isKind(of entity: String) -> Bool {
    lineage.contains(entity)
  }

  // MARK: Bodies

  /// The keys that the members of a body set, in its order, with their values. `@ref` must be the right one; it and
  /// `@revision` and `@lifetime` are ignored. A name that no key has is `invalid-value`: what the request names is
  /// there, and what it says of it is wrong.
  func settings(_ body: JSONObject, of reference: Reference) throws(ModelError) -> [(Int, Value)] {
    var values: [(Int, Value)] = []
    for name in body.members.keys {
      let value = body[name] ?? .null
      if name == "@revision" || name == "@lifetime" { continue }
      if name == "@ref" {
        guard value == .string(reference.text) else {
          throw ModelError(.invalidValue, "@ref is \(value.json), not \(reference)", object: reference, keyPath: name)
        }
        continue
      }
      guard let index = indexOfKey(name) else {
        throw ModelError(.invalidValue, undefined(name), object: reference, keyPath: name)
      }
      guard keys[index].storage != nil else {
        throw ModelError(.readOnlyKey, "'\(name)' is computed", object: reference, keyPath: name)
      }
      values.append((index, value))
    }
    return values
  }

  /// The keys that a record has values of, in the order in which it has them.
  var storedKeys: [Key] { keys.filter { $0.storage != nil } }
}

/// How a record knows when a key was set that computed keys of other objects read: as many are, all, some or none.
enum FarKeeping: Sendable {
  /// By its revision: all are.
  case revision
  /// By a revision besides: some are.
  case apart
  /// By the revision that made it: none is, and others read no more than whether the object is there.
  case creation

  init(farCount: Int, of storedCount: Int) {
    self = farCount == 0 ? .creation : farCount == storedCount ? .revision : .apart
  }
}

/// Where an object's keys are, what they are called in JSON and what setting them asks, without a reference in it that
/// threads would have to count: reading and setting are the hottest paths there are.
final class RecordLayout: Sendable {
  /// One key.
  struct Column: Sendable {
    /// Where the value stands in a record; -1 for computed keys.
    let storage: Int32
    /// Where the path of a computed key begins and ends in `paths`; empty where it has an operator or an expression.
    let pathStart: Int32
    let pathEnd: Int32
    /// Where `,"name":` begins and ends in `names`.
    let nameStart: Int32
    let nameEnd: Int32
    /// Whether it may be null.
    let isOptional: Bool
    /// When setting it notifies.
    let notifying: Key.Notifying
    /// The type, where it is an attribute.
    let type: AttributeType?
    /// Whether it is an attribute that takes every value of its type.
    let isUnconstrained: Bool
    /// Whether computed keys of other objects read it.
    let isReadFromAfar: Bool

    /// The value as the attribute keeps it, where setting the key to it asks no more than whether it may be null: it is
    /// of the type, or a whole number for one that keeps doubles. Nil says nothing.
    func plainForm(of value: Value) -> Value? {
      guard isUnconstrained else { return nil }
      return switch (type, value) {
      case (.string, .string), (.integer, .integer), (.number, .number), (.boolean, .bool): value
      case (.number, .integer(let integer)): .number(Double(integer))
      case (.json, .null), (.json, .bool), (.json, .integer), (.json, .number), (.json, .string): value
      default: nil
      }
    }
  }

  let columns: [Column]
  private let paths: [Int]
  let names: [UInt8]

  /// The keys of an entity, of which those with the indexes in `farKeys` are read by computed keys of other objects.
  init(keys: [Key], farKeys: Set<Int>) {
    var columns: [Column] = []
    var paths: [Int] = []
    var names: [UInt8] = []
    for (index, key) in keys.enumerated() {
      let (pathStart, nameStart) = (paths.count, names.count)
      if case .computed(let computed) = key.kind, case .path(let path)? = computed.formula, path.operation == nil,
        computed.conversion == nil
      {
        paths += path.keys
      }
      names += Array(",\"\(key.name)\":".utf8)
      columns.append(
        Column(
          storage: Int32(key.storage ?? -1), pathStart: Int32(pathStart), pathEnd: Int32(paths.count),
          nameStart: Int32(nameStart), nameEnd: Int32(names.count), isOptional: key.isOptional,
          notifying: key.notifying, type: key.attribute?.type, isUnconstrained: key.attribute?.isUnconstrained ?? false,
          isReadFromAfar: farKeys.contains(index)))
    }
    self.columns = columns
    self.paths = paths
    self.names = names
  }

  /// The path of a computed key.
  func path(of column: Column) -> ArraySlice<Int> { paths[Int(column.pathStart)..<Int(column.pathEnd)] }
}
