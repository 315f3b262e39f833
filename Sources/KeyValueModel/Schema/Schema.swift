import CEL
import Crypto
import Support
import Yams

/// All entities of a model. Immutable, and checked as a whole when it is loaded.
public struct Schema: Sendable {
  /// The contents of a schema, in one object: a schema is copied with every state, and a copy counts one reference.
  private final class Content: Sendable {
    let entities: [Entity]
    let names: NameTable
    let isLenient: Bool
    let warnings: [SchemaError.Problem]

    init(entities: [Entity], isLenient: Bool, warnings: [SchemaError.Problem]) {
      self.entities = entities
      self.isLenient = isLenient
      self.warnings = warnings
      names = NameTable(entities.map(\.name))
    }
  }

  private let content: Content

  init(entities: [Entity], isLenient: Bool = false, warnings: [SchemaError.Problem] = []) {
    content = Content(entities: entities, isLenient: isLenient, warnings: warnings)
  }

  /// The entities in the order of the file.
  public var entities: [Entity] { content.entities }

  /// The warnings: passages of the schema file that are valid but probably a mistake, in the order of the file.
  public var warnings: [SchemaError.Problem] { content.warnings }

  /// True while a schema is being compiled, when computed keys of unknown type count as JSON of any kind.
  var isLenient: Bool { content.isLenient }

  /// The entity of this name; nil if there is none.
  public func entity(named name: String) -> Entity? {
    content.names.index(of: name).map { entities[$0] }
  }

  /// The entity that a reference names, whether or not the object exists; nil if there is no such entity.
  public func entity(of reference: Reference) -> Entity? {
    entityIndex(of: reference).map { entities[$0] }
  }

  /// The index of the entity that a reference names; nil if there is no such entity.
  func entityIndex(of reference: Reference) -> Int? {
    content.names.index(ofTextBefore: UInt8(ascii: "/"), in: reference.text)
  }

  /// Returns the entity of this name, or throws `unknown-entity`.
  public func requireEntity(_ name: String) throws(ModelError) -> Entity {
    guard let entity = entity(named: name) else { throw ModelError(.unknownEntity, unknown(name)) }
    return entity
  }

  /// Returns the entity that a reference names, or throws `unknown-entity`.
  public func requireEntity(of reference: Reference) throws(ModelError) -> Entity {
    guard let entity = entity(of: reference) else { throw ModelError(.unknownEntity, unknown(reference.entity)) }
    return entity
  }

  /// The message for an unknown entity, with the nearest entity name as a hint.
  package func unknown(_ name: String) -> String {
    "the schema has no entity '\(name)'\(NearestName.hint(for: name, among: entities.map(\.name)))"
  }

  /// The entity and all entities that extend it, in the order of the file.
  public func family(of entity: Entity) -> [Entity] {
    entities.filter { $0.isKind(of: entity.name) }
  }

  // MARK: Loading

  /// Loads a schema file (the specification, section 2). Throws all mistakes found, each with line and column.
  public init(yaml: String) throws(SchemaError) {
    var reader = SchemaReader()
    let declarations = reader.read(yaml)
    var problems = reader.problems
    var compiler = SchemaCompiler()
    let schema = compiler.compile(declarations, access: reader.access)
    // Declarations that do not fit together are reported only once every declaration could be read; otherwise they
    // would be consequences of the mistakes already reported.
    if problems.isEmpty { problems = compiler.problems }
    guard problems.isEmpty else {
      throw SchemaError(problems: problems.sorted { ($0.line, $0.column) < ($1.line, $1.column) })
    }
    self = schema
  }

  /// The fingerprint of a schema file's content, ignoring comments and layout: two texts with the same fingerprint
  /// declare the same in the same order. Consists of 16 hexadecimal digits of SHA-256 (FIPS 180-4) of the YAML tree, or
  /// of the text itself if it is not YAML.
  package static func fingerprint(ofYAML text: String) -> String {
    var hash = SHA256()
    if let root = try? Yams.compose(yaml: text) {
      hash.update(root)
    } else {
      hash.update(text, kind: "t")
    }
    return hash.finalize().prefix(8).hexadecimal
  }

  // MARK: Failures

  /// The number of failed evaluations so far of each computed key that has an expression, for each entity that has the
  /// key: an inherited key counts separately in each subclass.
  package var expressionFailures: [(entity: String, key: String, count: Int)] {
    var found: [(entity: String, key: String, count: Int)] = []
    var seen: Set<ObjectIdentifier> = []
    for entity in entities {
      for key in entity.keys {
        guard case .computed(let computed) = key.kind, case .expression(let expression)? = computed.formula,
          seen.insert(ObjectIdentifier(expression)).inserted
        else { continue }
        found.append((entity.name, key.name, expression.failureCount))
      }
    }
    return found
  }
}

/// All mistakes in a schema file. A schema with any mistake is refused as a whole.
public struct SchemaError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A mistake.
  public struct Problem: Hashable, Sendable {
    /// The line, counted from 1.
    public let line: Int
    /// The column, counted from 1.
    public let column: Int
    /// The mistake, as a sentence.
    public let message: String

    /// The problem on one line, as compilers print it: `schema.yaml:3:7: warning: …`.
    public func rendered(as kind: String, file: String) -> String {
      "\(file):\(line):\(column): \(kind): \(message)"
    }
  }

  /// The mistakes in the order of the file; at least one.
  public let problems: [Problem]

  /// The mistakes, one a line, as compilers print them: `schema.yaml:3:7: error: …`.
  public func rendered(file: String) -> String {
    problems.map { $0.rendered(as: "error", file: file) }.joined(separator: "\n")
  }

  /// The mistakes, one a line, for a file without a name.
  public var description: String { rendered(file: "schema") }
}

/// A table that finds the index of a name by its bytes, without creating a string: every access to an object begins
/// with the name of its entity, and every setting continues with the name of a key.
struct NameTable: Sendable {
  /// The names in their order.
  private let names: [[UInt8]]
  /// A hash table with open addressing: indexes of names, each at the first free place from the hash of its name on; -1
  /// for a free place. At least half of the places are free.
  private let table: [Int]

  /// Creates a table of distinct names.
  init(_ texts: [String]) {
    let names = texts.map { Array($0.utf8) }
    var width = 4
    while width < 2 * names.count { width *= 2 }
    var table = Array(repeating: -1, count: width)
    for (index, name) in names.enumerated() {
      var place = name.withUnsafeBufferPointer(Self.hash) & (width - 1)
      while table[place] >= 0 { place = (place + 1) & (width - 1) }
      table[place] = index
    }
    self.names = names
    self.table = table
  }

  /// The index of a name; nil if it is not in the table.
  func index(of name: String) -> Int? {
    Self.withBytes(of: name, index)
  }

  /// The index of the name before the first occurrence of a byte in a text; nil if it is not in the table, or if the
  /// text does not have the byte.
  func index(ofTextBefore end: UInt8, in text: String) -> Int? {
    Self.withBytes(of: text) { bytes in
      bytes.firstIndex(of: end).flatMap { index(UnsafeBufferPointer(rebasing: bytes[..<$0])) }
    }
  }

  private static func withBytes<Result>(of text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    text.utf8.withContiguousStorageIfAvailable(body) ?? Array(text.utf8).withUnsafeBufferPointer(body)
  }

  private func index(_ name: UnsafeBufferPointer<UInt8>) -> Int? {
    var place = Self.hash(name) & (table.count - 1)
    while table[place] >= 0 {
      if Self.isEqual(names[table[place]], name) { return table[place] }
      place = (place + 1) & (table.count - 1)
    }
    return nil
  }

  private static func isEqual(_ left: [UInt8], _ right: UnsafeBufferPointer<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    for index in 0..<left.count where left[index] != right[index] { return false }
    return true
  }

  /// FNV-1a. The names come from the schema, so no client can choose them to collide.
  private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in bytes { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return Int(hash ^ (hash >> 16))
  }
}

extension SHA256 {
  /// Hashes a node in a form that differs for different trees: kinds, numbers and lengths precede contents. The order
  /// of a mapping counts, since the order of declarations does.
  fileprivate mutating func update(_ node: Node) {
    switch node {
    case .scalar(let scalar):
      // 8 and "8" are different values of the same text: one has the tag `tag:yaml.org,2002:int`.
      update(node.tag.description, kind: "s")
      update(scalar.string, kind: "s")
    case .sequence(let nodes):
      update("\(nodes.count)", kind: "l")
      for node in nodes { update(node) }
    case .mapping(let pairs):
      update("\(pairs.count)", kind: "m")
      for (key, value) in pairs {
        update(key)
        update(value)
      }
    case .alias(let alias):
      update("\(alias.anchor)", kind: "a")
    }
  }

  fileprivate mutating func update(_ text: String, kind: String) {
    update(Array("\(kind)\(text.utf8.count):\(text)".utf8))
  }
}
