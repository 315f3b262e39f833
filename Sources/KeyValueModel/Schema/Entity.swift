import CEL
import Support

/// A named kind of object: its keys, inherited ones first. Immutable once the schema is loaded.
public final class Entity: Sendable {
  /// The name, which is the part of a reference before the slash.
  public let name: String
  /// The index among the schema's entities.
  public let index: Int
  /// The name of the entity whose keys it inherits; nil if it extends none.
  public let parent: String?
  /// The names of the entity and of all its ancestors.
  public let lineage: Set<String>
  /// All keys; a key has the same index in every subclass.
  public let keys: [Key]
  /// The resolved key paths that a cell observes if it names none.
  public let display: [ModelKeyPath]
  /// The key path that consists of each key alone, by the key's index, since most requests name such paths. Empty while
  /// a schema is compiled.
  let keyPaths: [ModelKeyPath?]
  /// The number of values in an object's record.
  public let storageCount: Int

  /// The places in an object's record of relationships without an inverse.
  let referenceStorage: [Int]
  /// The indexed keys, each with its place in a record.
  let indexedKeys: [(key: Int, storage: Int)]
  /// The values in the record of a new object.
  let emptyValues: [Value]
  /// True if any key is a to-many.
  let hasCollections: Bool
  /// True if any key is computed.
  package let hasComputedKeys: Bool
  /// The way in which a record tracks the last setting of keys that computed keys of other objects read.
  let farKeeping: FarKeeping
  /// The keys in a second form, laid out for fast reading.
  let layout: RecordLayout
  /// The access rules of its objects.
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

  /// The index of a key, or nil if there is no key of this name.
  public func indexOfKey(_ name: String) -> Int? {
    names.index(of: name)
  }

  /// The message for an undefined key, with the nearest key name as a hint.
  package func undefined(_ name: String) -> String {
    "\(self.name) has no key '\(name)'\(NearestName.hint(for: name, among: keys.map(\.name)))"
  }

  /// Returns true if the key at an index is an attribute.
  package func isAttribute(_ key: Int) -> Bool { layout.columns[key].type != nil }

  /// Returns when setting the key at an index notifies.
  package func notifying(_ key: Int) -> Key.Notifying { layout.columns[key].notifying }

  /// Returns true if this is the entity named `entity` or extends it.
  public func isKind(of entity: String) -> Bool {
    lineage.contains(entity)
  }

  // MARK: Bodies

  /// Returns the keys that the members of a body set, in the order of the body, with their values. `@ref` must be the
  /// object's own; `@ref`, `@revision` and `@lifetime` set nothing. An undefined name is `invalid-value` and not a
  /// missing resource: the object that the request names exists, and its body is wrong.
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

  /// The keys whose values a record holds, in the order of the record.
  var storedKeys: [Key] { keys.filter { $0.storage != nil } }
}

/// The way in which a record tracks the last setting of keys that computed keys of other objects read. It depends on
/// whether all, some or none of its keys are read so.
enum FarKeeping: Sendable {
  /// By its revision: all keys are read.
  case revision
  /// By an additional revision: some keys are read.
  case apart
  /// By the revision that created it: no key is read, and other objects read only its existence.
  case creation

  init(farCount: Int, of storedCount: Int) {
    self = farCount == 0 ? .creation : farCount == storedCount ? .revision : .apart
  }
}

/// The places, JSON names and constraints of an object's keys, without references that threads would have to count:
/// reading and setting are the hottest paths.
final class RecordLayout: Sendable {
  /// One key.
  struct Column: Sendable {
    /// The place of the value in a record; -1 for computed keys.
    let storage: Int32
    /// The range of a computed key's path in `paths`; empty if the key has an operator, an expression or a conversion.
    let pathStart: Int32
    let pathEnd: Int32
    /// The range of `,"name":` in `names`.
    let nameStart: Int32
    let nameEnd: Int32
    /// True if the value may be null.
    let isOptional: Bool
    /// The condition under which setting the key notifies.
    let notifying: Key.Notifying
    /// The type, if the key is an attribute.
    let type: AttributeType?
    /// True for an attribute that accepts every value of its type.
    let isUnconstrained: Bool
    /// True if computed keys of other objects read the key.
    let isReadFromAfar: Bool

    /// The value in the form in which the attribute stores it, if no check is needed but that for null: the value is of
    /// the type, or a whole number for a key that stores doubles. Nil means that this fast path does not apply, not
    /// that the value is refused.
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

  /// Creates the layout for the keys of an entity. Computed keys of other objects read the keys with the indexes in
  /// `farKeys`.
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
