import KeyValueModel
import KeywayClient
import OrderedCollections

/// How the rows of one file become objects: settled from the header and the schema before anything is written.
struct ImportPlan: Sendable {
  struct Column: Hashable, Sendable {
    var name: String
    /// The key it goes to; nil for a column that only the id is made of.
    var key: String?
    var type: ColumnType
    /// The entity of the to-one that it goes to.
    var destination: String?
    /// True for a column without a name that no option calls by its number: all its fields have to be empty.
    var isUnnamed = false
  }

  struct Row: Hashable, Sendable {
    var line: Int
    /// Nil where the server makes it.
    var id: String?
    /// The texts that the id is made of.
    var idParts: [String] = []
    var object: JSONObject
  }

  let columns: [Column]
  /// True if the entity has a relationship with an inverse that no column goes to: where an object is replaced, it is
  /// left to its other side.
  let leavesRelationships: Bool
  private let keys: OrderedDictionary<String, ImportKey>
  private let idColumns: [Int]
  private let rules: FieldRules
  /// How many fields a record has at least.
  private let leastFields: Int

  /// A plan for a file with this header. `schema` is the entity's JSON Schema; `renames` gives the keys of columns that
  /// are named otherwise, an empty one for a column that is not written; `references` the entities of columns that have
  /// ids. Without `idColumns` the server makes the ids; a column that is among them needs no key. A column without a
  /// name is called by its number.
  init(
    header: CSVRecord, schema: JSONObject, idColumns: [String], renames: [String: String],
    references: [String: String] = [:], rules: FieldRules
  ) throws(InvalidCell) {
    let called = Array(renames.keys) + references.keys + idColumns
    let names = try Self.names(header, called: called)
    var columns: [Column] = []
    for (index, name) in names.enumerated() {
      guard let name else {
        columns.append(Column(name: String(index + 1), key: nil, type: .string, isUnnamed: true))
        continue
      }
      var column: Column
      do {
        column = try Self.column(name, key: renames[name], isID: idColumns.contains(name), schema: schema)
      } catch {
        throw InvalidCell(reason: error.reason, hint: Self.delimiterHint(header))
      }
      if let entity = references[name] {
        guard column.destination != nil else {
          throw InvalidCell(
            reason: "the column \(name) goes to no to-one, so --reference \(name)=\(entity) says nothing")
        }
        column.type = .reference(entity: entity)
      }
      columns.append(column)
    }
    let given = columns.compactMap(\.key)
    if let key = given.first(where: { key in given.count { $0 == key } > 1 }) {
      throw InvalidCell(reason: "two columns go to the key \(key)")
    }
    let keys = ImportSchema.keys(in: schema["properties"]?.asObject ?? JSONObject())
    leavesRelationships = keys.contains { !given.contains($0.key) && $0.value.inverse != nil }
    self.keys = keys
    self.columns = columns
    self.idColumns = idColumns.compactMap { names.firstIndex(of: $0) }
    self.rules = rules
    leastFields = (columns.lastIndex { !$0.isUnnamed } ?? 0) + 1
  }

  /// The names of the columns; a column without one has its number if the command line calls it so, else nil.
  private static func names(_ header: CSVRecord, called: [String]) throws(InvalidCell) -> [String?] {
    let given = header.fields.map { $0.text.allSatisfy(\.isWhitespace) ? nil : $0.text }
    let names = given.compactMap(\.self)
    guard !names.isEmpty else { throw InvalidCell(reason: "the first record has no names of columns") }
    if let name = names.first(where: { name in names.count { $0 == name } > 1 }) {
      throw InvalidCell(reason: "the column \(name) comes twice")
    }
    let result = given.enumerated().map { index, name in
      name ?? (called.contains("\(index + 1)") && !names.contains("\(index + 1)") ? "\(index + 1)" : nil)
    }
    if let name = called.sorted().first(where: { !result.contains($0) }) {
      throw InvalidCell(
        reason: "there is no column \(name); there are \(names.joined(separator: ", "))", hint: delimiterHint(header))
    }
    return result
  }

  /// The option for a header whose only name has another delimiter inside.
  private static func delimiterHint(_ header: CSVRecord) -> String? {
    guard header.fields.count == 1, let name = header.fields.first?.text else { return nil }
    let others = [(";", "';'"), ("\t", "tab"), ("|", "'|'"), (",", ",")]
    return others.first { name.contains($0.0) }.map { "--delimiter \($0.1) splits the fields of the file" }
  }

  /// The column of a name, with the key that the command line gives it; an empty one leaves it out. A column that the
  /// id is made of needs no key.
  private static func column(
    _ name: String, key given: String?, isID: Bool, schema: JSONObject
  ) throws(InvalidCell) -> Column {
    let key = given ?? name
    let properties = schema["properties"]?.asObject ?? JSONObject()
    if key.isEmpty || (isID && given == nil && properties[key] == nil) {
      return Column(name: name, key: nil, type: .string)
    }
    if let property = properties[key]?.asObject {
      guard let type = ColumnType(schema: property) else {
        throw InvalidCell(reason: "the key \(key) is read-only. --map \(name)= leaves the column out")
      }
      return Column(name: name, key: key, type: type, destination: property["keyway:toOne"]?.asString)
    }
    let keys = properties.members.keys.filter { !$0.hasPrefix("@") }
    throw InvalidCell(
      reason: "the entity has no key \(key) for the column \(name); it has \(keys.joined(separator: ", ")). "
        + "--map \(name)=KEY names another, --map \(name)= leaves the column out")
  }

  /// What the command line could say so that the server takes the value of a key that it has refused; nil where nothing
  /// is known.
  func hint(forKey key: String, of row: Row) -> String? {
    guard let column = columns.first(where: { $0.key == key }), let destination = column.destination,
      column.type == .string, let text = row.object[key]?.asString, !text.contains("/")
    else { return nil }
    return "--reference \(column.name)=\(destination) takes the ids of the column for objects of \(destination)"
  }

  /// The object of a record. The id is made of values as they are written, but of dates in their RFC 3339 form, and of
  /// integers by their digits alone.
  func row(_ record: CSVRecord) throws(InvalidCell) -> Row {
    let fields = record.fields
    guard fields.count >= leastFields, fields.dropFirst(columns.count).allSatisfy(\.text.isEmpty) else {
      throw InvalidCell(reason: "\(fields.count) fields, where the header has \(columns.count)")
    }
    var object = JSONObject()
    var texts: [String] = []
    for (column, field) in zip(columns, fields) {
      let value: Value?
      do {
        value = try column.type.value(field, rules)
      } catch {
        throw InvalidCell(reason: "\(column.name) \(error.reason)", hint: error.hint)
      }
      guard !column.isUnnamed || field.text.isEmpty else { throw Self.unnamed(column, field) }
      if let key = column.key, let value { object[key] = value }
      switch (column.type, value) {
      case (_, nil): texts.append("")
      case (.date, .string(let date)?): texts.append(date)
      case (.integer, .integer(let integer)?): texts.append(String(integer))
      default: texts.append(field.text)
      }
    }
    let idParts = idColumns.map { texts[$0] }
    let id = idColumns.isEmpty ? nil : try ImportID.id(of: idParts)
    return Row(line: record.line, id: id, idParts: idParts, object: object)
  }

  /// The operations that set an object that is there to what a row says: the keys that it lacks to their
  /// defaults, but a relationship with an inverse that no column goes to not at all.
  func replacement(of object: Reference, by row: Row) -> [PlannedOperation] {
    let given = Set(columns.compactMap(\.key))
    var values = JSONObject()
    var documents: [PlannedOperation] = []
    for (name, key) in keys where key.kind != .computed {
      guard given.contains(name) || key.inverse == nil else { continue }
      let value = row.object[name] ?? key.defaultValue
      if key.kind == .document {
        // A patch would merge it.
        documents.append(PlannedOperation(line: row.line, object: object, kind: .set(key: name, value)))
      } else {
        values[name] = value
      }
    }
    return [PlannedOperation(line: row.line, object: object, kind: .patch(values))] + documents
  }

  private static func unnamed(_ column: Column, _ field: CSVField) -> InvalidCell {
    InvalidCell(
      reason: "the column \(column.name) has no name, and the value \(field.text)",
      hint: "--map \(column.name)=KEY gives the column \(column.name) to a key, --map \(column.name)= leaves it out")
  }
}
