import KeyValueModel
import KeywayClient
import OrderedCollections

/// Reads lines as objects of a schema, which is checked as far as the plan depends on it; values are checked by the
/// server.
struct ObjectLineReader: Sendable {
  let schema: ImportSchema
  /// The entity of lines without `@ref`.
  var entity: String?
  /// The members that the id of such lines is made of.
  var idPaths: [String] = []
  /// The keys of members that are named otherwise, by name or path; an empty one leaves the member out.
  var renames: [String: String] = [:]
  /// The entities of members that have ids, by name or path.
  var references: [String: String] = [:]
  /// How the texts of a line are written.
  var rules = FieldRules()

  /// The object of a line. Throws what is wrong with it.
  func object(_ line: LineFile.Line) throws(InvalidCell) -> ObjectLine {
    let value: Value
    do throws(JSONError) {
      value = try Value(json: Array(line.bytes), depthLimit: ImportLimits.jsonDepth)
    } catch {
      throw InvalidCell(reason: "is no JSON: \(error)")
    }
    guard case .object(let members) = value else { throw InvalidCell(reason: "is no JSON object") }
    let (reference, idParts) = try reference(members)
    guard let keys = schema.entities[reference.entity] else { throw unknownEntity(reference.entity) }
    var row = ObjectLine(line: line.number, bytes: line.bytes.count, reference: reference)
    row.idParts = idParts
    row.lifetime = try lifetime(members)
    var given: Set<String> = []
    for (path, name, value) in assignments(of: members, keys: Set(keys.keys)) {
      guard let key = keys[name] else { throw unknownKey(name, of: reference.entity, path) }
      guard given.insert(name).inserted else { throw InvalidCell(reason: "two members go to the key \(name)") }
      if let value = try self.value(value, at: path, for: key) { try add(name, key, value, to: &row) }
    }
    return row
  }

  private typealias Assignment = (path: String, key: String, value: Value)

  /// The members of a line with the keys that they go to: those inside of others first, so that what is left of those
  /// can be left out, or go to a key too.
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

  /// What a member says for a key: a text is read as a field of that type is; nil where it stands for no value.
  private func value(_ value: Value, at path: String, for key: ImportKey) throws(InvalidCell) -> Value? {
    do throws(InvalidCell) {
      if let entity = references[path] {
        guard key.kind == .toOne || key.kind == .toMany else {
          throw InvalidCell(reason: "goes to no relationship, so --reference \(path)=\(entity) says nothing")
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

  /// The reference that an id stands for; null is null.
  private func referring(_ id: Value, to entity: String) throws(InvalidCell) -> Value? {
    if id == .null { return .null }
    guard let text = id.asString ?? id.wholeNumber.map({ String($0) }) else {
      throw InvalidCell(reason: "wants an id and is \(id.json)")
    }
    return try ColumnType.reference(entity: entity).value(CSVField(text: text, isQuoted: true), rules)
  }

  /// The lease of a line. One that ends with a stream cannot be had without that stream.
  private func lifetime(_ members: JSONObject) throws(InvalidCell) -> Int64? {
    switch members["@lifetime"] {
    case nil: return nil
    case .integer(let seconds)? where seconds > 0: return seconds
    case let value?: throw InvalidCell(reason: "@lifetime wants a number of seconds and is \(value.json)")
    }
  }

  private func unknownEntity(_ name: String) -> InvalidCell {
    InvalidCell(reason: "there is no entity \(name); there are \(schema.entities.keys.joined(separator: ", "))")
  }

  /// The reference of a line, with the texts that its id is made of where it is made of any.
  private func reference(_ members: JSONObject) throws(InvalidCell) -> (Reference, idParts: [String]) {
    if let value = members["@ref"] {
      guard let reference = value.asString.flatMap({ Reference($0) }) else {
        throw InvalidCell(reason: "@ref wants a reference such as \"Account/1\" and is \(value.json)")
      }
      return (reference, [])
    }
    guard let entity, !idPaths.isEmpty else {
      throw InvalidCell(reason: "there is no @ref; for lines without, --entity and --id say what they are")
    }
    var parts: [String] = []
    let line = LineMembers(members)
    for path in idPaths {
      let value = line.value(path)
      guard let part = value?.asString ?? value?.wholeNumber.map({ String($0) }), !rules.nulls.contains(part) else {
        throw InvalidCell(reason: "\(path) makes no id: it is \(value?.json ?? "missing")")
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
    case (.toMany, _): throw InvalidCell(reason: "\(name) wants an array of references and is \(value.json)")
    }
  }

  private func link(
    _ name: String, _ key: ImportKey, _ values: [Value], _ row: ObjectLine
  ) throws(InvalidCell) -> ImportLink {
    var targets: [Reference] = []
    for value in values {
      guard let target = value.asString.flatMap({ Reference($0) }) else {
        throw InvalidCell(reason: "\(name) wants a reference such as \"Account/1\" and is \(value.json)")
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
