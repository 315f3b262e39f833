import KeyValueModel
import KeywayClient
import OrderedCollections

/// Reads lines as objects of a schema. It checks the schema as far as the plan depends on it. The server checks the
/// values.
struct ObjectLineReader: Sendable {
  let schema: ImportSchema
  /// The entity of lines without `@ref`.
  var entity: String?
  /// The members from which the id of such lines is made.
  var idPaths: [String] = []
  /// The keys of members with other names, by name or path. An empty key leaves the member out.
  var renames: [String: String] = [:]
  /// The entities of members with ids, by name or path.
  var references: [String: String] = [:]
  /// The notation of the texts of a line.
  var rules = FieldRules()

  /// Returns the object of a line. Throws if the line is invalid.
  func object(_ line: LineFile.Line) throws(InvalidCell) -> ObjectLine {
    let value: Value
    do throws(JSONError) {
      value = try Value(json: Array(line.bytes), depthLimit: ImportLimits.jsonDepth)
    } catch {
      throw InvalidCell(reason: "is not JSON: \(error)")
    }
    guard case .object(let members) = value else { throw InvalidCell(reason: "is not a JSON object") }
    let (reference, idParts) = try reference(members)
    guard let keys = schema.entities[reference.entity] else { throw unknownEntity(reference.entity) }
    var row = ObjectLine(line: line.number, bytes: line.bytes.count, reference: reference)
    row.idParts = idParts
    row.lifetime = try lifetime(members)
    var given: Set<String> = []
    for (path, name, value) in assignments(of: members, keys: Set(keys.keys)) {
      guard let key = keys[name] else { throw unknownKey(name, of: reference.entity, path) }
      guard given.insert(name).inserted else { throw InvalidCell(reason: "two members set the key \(name)") }
      if let value = try self.value(value, at: path, for: key) { try add(name, key, value, to: &row) }
    }
    return row
  }

  private typealias Assignment = (path: String, key: String, value: Value)

  /// Returns the members of a line with their keys. Nested members come first, so that the rest of an outer member can
  /// be left out, or set a key too.
  private func assignments(of members: JSONObject, keys: Set<String>) -> [Assignment] {
    var result: [Assignment] = []
    var left = LineMembers(members)
    for name in ["@ref", "@revision", "@lifetime"] { _ = left.take(name) }
    if members["@ref"] == nil {
      for path in idPaths where renames[path] == nil && !keys.contains(path) { _ = left.take(path) }
    }
    let paths = Set(renames.keys).union(references.keys).filter { members[$0] == nil }
    for path in paths.sorted(by: { ($1.utf8.count, $0) < ($0.utf8.count, $1) }) {
      if let value = left.take(path) { result.append((path, renames[path] ?? path, value)) }
    }
    result += left.rest.members.map { ($0.key, renames[$0.key] ?? $0.key, $0.value) }
    return result.filter { !$0.key.isEmpty }
  }

  private func unknownKey(_ name: String, of entity: String, _ path: String) -> InvalidCell {
    let keys = schema.entities[entity]?.keys.joined(separator: ", ") ?? ""
    return InvalidCell(
      reason: "\(entity) has no key \(name)\(path == name ? "" : " for \(path)"); it has \(keys)",
      hint: "--map \(path)=KEY names another key, --map \(path)= leaves \(path) out")
  }

  /// Returns the value of a member for a key. A text is read like a field of that type. Nil if it represents no value.
  private func value(_ value: Value, at path: String, for key: ImportKey) throws(InvalidCell) -> Value? {
    do throws(InvalidCell) {
      if let entity = references[path] {
        guard key.kind == .toOne || key.kind == .toMany else {
          throw InvalidCell(reason: "does not set a relationship, so --reference \(path)=\(entity) has no effect")
        }
        guard case .array(let elements) = value else { return try referring(value, to: entity) }
        var references: [Value] = []
        for element in elements {
          if let reference = try referring(element, to: entity) { references.append(reference) }
        }
        return .array(references)
      }
      guard case .string(let text) = value else { return value }
      if rules.nulls.contains(text) { return nil }
      switch key.type {
      case .integer?, .number?, .boolean?, .date?:
        return try key.type?.value(CSVField(text: text, isQuoted: true), rules)
      case .string?, .json?, .reference?, nil: return value
      }
    } catch {
      throw InvalidCell(reason: "\(path) \(error.reason)", hint: error.hint)
    }
  }

  /// Returns the reference of an id, or null for null.
  private func referring(_ id: Value, to entity: String) throws(InvalidCell) -> Value? {
    if id == .null { return .null }
    guard let text = id.asString ?? id.wholeNumber.map({ String($0) }) else {
      throw InvalidCell(reason: "must be an id, not \(id.json)")
    }
    return try ColumnType.reference(entity: entity).value(CSVField(text: text, isQuoted: true), rules)
  }

  /// Returns the lease of a line in seconds. A lease that ends with a stream is refused, since that stream does not
  /// exist.
  private func lifetime(_ members: JSONObject) throws(InvalidCell) -> Int64? {
    switch members["@lifetime"] {
    case nil: return nil
    case .integer(let seconds)? where seconds > 0: return seconds
    case let value?: throw InvalidCell(reason: "@lifetime must be a number of seconds, not \(value.json)")
    }
  }

  private func unknownEntity(_ name: String) -> InvalidCell {
    InvalidCell(reason: "the schema has no entity \(name); it has \(schema.entities.keys.joined(separator: ", "))")
  }

  /// Returns the reference of a line, with the texts from which its id is made, if any.
  private func reference(_ members: JSONObject) throws(InvalidCell) -> (Reference, idParts: [String]) {
    if let value = members["@ref"] {
      guard let reference = value.asString.flatMap({ Reference($0) }) else {
        throw InvalidCell(reason: "@ref must be a reference such as \"Account/1\", not \(value.json)")
      }
      return (reference, [])
    }
    guard let entity, !idPaths.isEmpty else {
      throw InvalidCell(reason: "the line has no @ref; use --entity and --id for lines without one")
    }
    var parts: [String] = []
    let line = LineMembers(members)
    for path in idPaths {
      let value = line.value(path)
      guard let part = value?.asString ?? value?.wholeNumber.map({ String($0) }), !rules.nulls.contains(part) else {
        throw InvalidCell(reason: "\(path) cannot be an id: it is \(value?.json ?? "missing")")
      }
      parts.append(part)
    }
    guard let reference = Reference(entity: entity, id: try ImportID.id(of: parts)) else { throw unknownEntity(entity) }
    return (reference, parts)
  }

  private func add(
    _ name: String, _ key: ImportKey, _ value: Value, to row: inout ObjectLine
  ) throws(InvalidCell) {
    switch (key.kind, value) {
    case (.computed, _): throw InvalidCell(reason: "\(name) is computed and cannot be imported")
    case (.document, _): row.documents[name] = value
    case (.value, _), (.toOne, .null): row.values[name] = value
    case (.toMany, .array(let elements)) where elements.isEmpty: row.values[name] = value
    case (.toOne, _): row.links.append(try link(name, key, [value], row))
    case (.toMany, .array(let elements)): row.links.append(try link(name, key, elements, row))
    case (.toMany, _): throw InvalidCell(reason: "\(name) must be an array of references, not \(value.json)")
    }
  }

  private func link(
    _ name: String, _ key: ImportKey, _ values: [Value], _ row: ObjectLine
  ) throws(InvalidCell) -> ImportLink {
    var targets: [Reference] = []
    for value in values {
      guard let target = value.asString.flatMap({ Reference($0) }) else {
        throw InvalidCell(reason: "\(name) must be a reference such as \"Account/1\", not \(value.json)")
      }
      guard schema.entities[target.entity] != nil else {
        throw InvalidCell(reason: "\(name) names \(target), and \(unknownEntity(target.entity).reason)")
      }
      targets.append(target)
    }
    return ImportLink(
      line: row.line, owner: row.reference, key: name, targets: targets, isToMany: key.kind == .toMany,
      isRequired: key.kind == .toOne && key.isRequired, inverse: key.inverse)
  }
}

/// One object of a file of JSON lines, split by the schema.
struct ObjectLine: Hashable, Sendable {
  /// The line, from 1.
  var line: Int
  var bytes = 0
  var reference: Reference
  /// The texts from which the id is made. Empty if the line has its reference.
  var idParts: [String] = []
  /// The keys with values, and the relationships without objects.
  var values = JSONObject()
  /// The keys with any JSON value.
  var documents = JSONObject()
  /// The relationships that name objects.
  var links: [ImportLink] = []
  /// The lifetime of the object in seconds, or nil if the line has none.
  var lifetime: Int64?
  /// True if the object exists and is to be replaced.
  var replaces = false

  /// The size in a transaction, estimated from above: its own bytes, and an operation for each link.
  var weight: Int {
    links.reduce(bytes + 64) { $0 + 96 + reference.text.utf8.count + $1.targets.count * 2 + $1.key.utf8.count }
  }
}

/// A relationship of one object in a line, with at least one object on the other side.
struct ImportLink: Hashable, Sendable {
  /// The name under which it is held back, since an object's key has one value.
  struct Name: Hashable, Sendable {
    var owner: Reference
    var key: String
  }

  var line: Int
  var owner: Reference
  var key: String
  /// The objects that it names, in order.
  var targets: [Reference]
  /// True if it is a to-many, which is set as a whole.
  var isToMany = false
  /// True if its object cannot be created without it.
  var isRequired = false
  /// The key on the other side that the server keeps consistent.
  var inverse: String?

  /// The name under which it is held back.
  var name: Name { Name(owner: owner, key: key) }

  var value: Value {
    if isToMany { return .array(targets.map(Value.reference)) }
    return targets.first.map(Value.reference) ?? .null
  }
}

/// The members of one line of JSON, which are taken by name, or by a path into nested objects.
private struct LineMembers {
  /// The members that have not been taken yet.
  private(set) var rest: JSONObject

  init(_ members: JSONObject) {
    rest = members
  }

  /// Takes the member with a name, or with a path such as `profile.name`. An object that becomes empty is removed too.
  /// Nil if there is none.
  mutating func take(_ path: String) -> Value? { Self.take(path[...], from: &rest) }

  /// Returns the member with a name or a path without taking it, or nil if there is none.
  func value(_ path: String) -> Value? {
    var copy = self
    return copy.take(path)
  }

  private static func take(_ path: Substring, from object: inout JSONObject) -> Value? {
    if let value = object[String(path)] {
      object[String(path)] = nil
      return value
    }
    for dot in path.indices where path[dot] == "." {
      let head = String(path[..<dot])
      guard case .object(var inner)? = object[head] else { continue }
      guard let value = take(path[path.index(after: dot)...], from: &inner) else { continue }
      object[head] = inner.members.isEmpty ? nil : .object(inner)
      return value
    }
    return nil
  }
}

/// The lines of a file, read piece by piece. Empty ones are skipped.
struct LineFile {
  struct Line: Hashable, Sendable {
    /// The number of the line, from 1.
    var number: Int
    var bytes: ArraySlice<UInt8>
  }

  private(set) var file: InputFile
  private var waiting: [UInt8] = []
  private var position = 0
  private var number = 0
  private var isAtEnd = false

  init(_ file: InputFile) { self.file = file }

  /// Returns the next line that is not blank, or nil at the end.
  mutating func next() throws(ImportError) -> Line? {
    while let bytes = try nextBytes() {
      number += 1
      let isBlank = bytes.allSatisfy { $0 == UInt8(ascii: " ") || (9...13).contains($0) }
      if !isBlank { return Line(number: number, bytes: bytes) }
    }
    return nil
  }

  private mutating func nextBytes() throws(ImportError) -> ArraySlice<UInt8>? {
    var searched = position
    while true {
      if let end = waiting[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { position = end + 1 }
        return try checked(waiting[position..<end])
      }
      if isAtEnd {
        defer { position = waiting.count }
        return position == waiting.count ? nil : try checked(waiting[position...])
      }
      _ = try checked(waiting[position...])
      searched = waiting.count - position
      try readPiece()
    }
  }

  private func checked(_ bytes: ArraySlice<UInt8>) throws(ImportError) -> ArraySlice<UInt8> {
    guard bytes.count <= ImportLimits.lineBytes else {
      throw ImportError(line: number + 1, reason: "the line is longer than \(ImportLimits.lineBytes) bytes")
    }
    return bytes
  }

  private mutating func readPiece() throws(ImportError) {
    waiting.removeSubrange(..<position)
    position = 0
    if let piece = try file.next() { waiting.append(contentsOf: piece) } else { isAtEnd = true }
  }
}
