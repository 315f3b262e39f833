import KeyValueModel
import KeywayClient
import OrderedCollections

/// Reads lines as objects of a schema, which is checked as far as the plan depends on it; values are checked by the
/// server.
struct ObjectLineReader: Sendable {
  let schema: ImportSchema
  /// The entity of lines without `@ref`.
  var entity: String?
  /// The keys that the id of such lines is made of.
  var idKeys: [String] = []

  /// The object of a line. Throws what is wrong with it.
  func object(_ line: LineFile.Line) throws(InvalidCell) -> ObjectLine {
    let value: Value
    do throws(JSONError) {
      value = try Value(json: Array(line.bytes), depthLimit: ImportLimits.jsonDepth)
    } catch {
      throw InvalidCell(reason: "is no JSON: \(error)")
    }
    guard case .object(let members) = value else { throw InvalidCell(reason: "is no JSON object") }
    let reference = try reference(members)
    guard let keys = schema.entities[reference.entity] else { throw unknownEntity(reference.entity) }
    var row = ObjectLine(line: line.number, bytes: line.bytes.count, reference: reference)
    row.lifetime = try lifetime(members)
    for (name, value) in members.members where !["@ref", "@revision", "@lifetime"].contains(name) {
      if let key = keys[name] {
        try add(name, key, value, to: &row)
      } else if members["@ref"] != nil || !idKeys.contains(name) {
        throw InvalidCell(
          reason: "\(reference.entity) has no key \(name); it has \(keys.keys.joined(separator: ", "))")
      }
    }
    return row
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

  private func reference(_ members: JSONObject) throws(InvalidCell) -> Reference {
    if let value = members["@ref"] {
      guard let reference = value.asString.flatMap({ Reference($0) }) else {
        throw InvalidCell(reason: "@ref wants a reference such as \"Account/1\" and is \(value.json)")
      }
      return reference
    }
    guard let entity, !idKeys.isEmpty else {
      throw InvalidCell(reason: "there is no @ref; for lines without, --entity and --id say what they are")
    }
    var parts: [String] = []
    for key in idKeys {
      switch members[key] {
      case .string(let text)?: parts.append(text)
      case .integer(let number)?: parts.append(String(number))
      case let value: throw InvalidCell(reason: "\(key) makes no id: it is \(value?.json ?? "missing")")
      }
    }
    guard let reference = Reference(entity: entity, id: try ImportID.id(of: parts)) else { throw unknownEntity(entity) }
    return reference
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
