import CEL
import Crypto
import Support
import Yams

/// Every entity of a model. Immutable, and checked as a whole when it is loaded.
public struct Schema: Sendable {
  /// What a schema holds, in one object: it is copied with every state, and each copy counts one reference.
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

  /// Passages of the schema file that are valid and probably not meant so, in the order of the file.
  public var warnings: [SchemaError.Problem] { content.warnings }

  /// Whether computed keys whose type is not known yet count as JSON of any sort: while a schema is being compiled.
  var isLenient: Bool { content.isLenient }

  /// The entity of this name.
  public func entity(named name: String) -> Entity? {
    content.names.index(of: name).map { entities[$0] }
  }

  /// The entity that a reference names, whether or not there is such an object.
  public func entity(of reference: Reference) -> Entity? {
    entityIndex(of: reference).map { entities[$0] }
  }

  /// The index of the same.
  func entityIndex(of reference: Reference) -> Int? {
    content.names.index(ofTextBefore: UInt8(ascii: "/"), in: reference.text)
  }

  /// The entity of this name, or `unknown-entity`.
  public func requireEntity(_ name: String) throws(ModelError) -> Entity {
    guard let entity = entity(named: name) else { throw ModelError(.unknownEntity, unknown(name)) }
    return entity
  }

  /// The entity that a reference names, or `unknown-entity`.
  public func requireEntity(of reference: Reference) throws(ModelError) -> Entity {
    guard let entity = entity(of: reference) else { throw ModelError(.unknownEntity, unknown(reference.entity)) }
    return entity
  }

  /// What is said about a name that no entity has, with the nearest that one has.
  package func unknown(_ name: String) -> String {
    "there is no entity '\(name)'\(NearestName.hint(for: name, among: entities.map(\.name)))"
  }

  /// An entity and everything that extends it, in the order of the file.
  public func family(of entity: Entity) -> [Entity] {
    entities.filter { $0.isKind(of: entity.name) }
  }

  // MARK: Loading

  /// Loads a schema file (the specification, section 2). Throws every mistake that was found, with line and column.
  public init(yaml: String) throws(SchemaError) {
    var reader = SchemaReader()
    let declarations = reader.read(yaml)
    var problems = reader.problems
    var compiler = SchemaCompiler()
    let schema = compiler.compile(declarations, access: reader.access)
    // What does not fit together is reported only once every declaration could be read: the rest would be echoes.
    if problems.isEmpty { problems = compiler.problems }
    guard problems.isEmpty else {
      throw SchemaError(problems: problems.sorted { ($0.line, $0.column) < ($1.line, $1.column) })
    }
    self = schema
  }

  /// Stands for what a schema file says, apart from comments and layout: two texts with the same fingerprint declare
  /// the same in the same order. 16 hexadecimal digits of SHA-256 (FIPS 180-4) of the YAML tree; of the text itself,
  /// where that is no YAML.
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

  /// How often each computed key's expression has failed so far, for keys that have one; under the entity that declares
  /// it.
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

/// Everything that is wrong with a schema file. A schema with any mistake is refused as a whole.
public struct SchemaError: Error, Hashable, Sendable, CustomStringConvertible {
  /// One mistake.
  public struct Problem: Hashable, Sendable {
    /// The line, counted from 1.
    public let line: Int
    /// The column, counted from 1.
    public let column: Int
    /// What is wrong, as a sentence.
    public let message: String

    /// The problem in a line, as compilers print it: `schema.yaml:3:7: warning: …`.
    public func rendered(as kind: String, file: String) -> String {
      "\(file):\(line):\(column): \(kind): \(message)"
    }
  }

  /// The mistakes in the order of the file; at least one.
  public let problems: [Problem]

  /// One mistake a line, as compilers print them: `schema.yaml:3:7: error: …`.
  public func rendered(file: String) -> String {
    problems.map { $0.rendered(as: "error", file: file) }.joined(separator: "\n")
  }

  /// The mistakes, for a file without a name.
  public var description: String { rendered(file: "schema") }
}

/// Finds where a name stands in a list by its bytes, without a string for it: every access to an object begins with
/// the name of its entity, and every setting goes on with that of a key.
struct NameTable: Sendable {
  /// The names in their order.
  private let names: [[UInt8]]
  /// Indexes of names, each at the first free place from its name's hash on; -1 where there is none. At least half of
  /// the places are free.
  private let table: [Int]

  /// A table of names, none of them twice.
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

  /// Where a name stands, nil where it is none of these.
  func index(of name: String) -> Int? {
    Self.withBytes(of: name, index)
  }

  /// The same for what stands before a byte in a text; nil also where that byte is not in it.
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

  /// FNV-1a. The names are the schema's, so that no client can choose them to collide.
  private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in bytes { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return Int(hash ^ (hash >> 16))
  }
}

extension SHA256 {
  /// Takes a node so that no two different trees give the same bytes: kinds, numbers and lengths stand before contents.
  /// The order of a mapping counts, because that of the declarations does.
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
