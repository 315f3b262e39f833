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
