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
  }

  struct Row: Hashable, Sendable {
    var line: Int
    /// Nil where the server makes it.
    var id: String?
    var object: JSONObject
  }

  let columns: [Column]
  private let idColumns: [Int]
  private let dateFormat: DateFormat?

  /// A plan for a file with this header. `schema` is the entity's JSON Schema; `renames` gives the keys of columns that
  /// are named otherwise, an empty one for a column that is not written; `references` the entities of columns that have
  /// ids. Without `idColumns` the server makes the ids; a column that is among them needs no key.
  init(
    header: CSVRecord, schema: JSONObject, idColumns: [String], renames: [String: String],
    references: [String: String] = [:], dateFormat: DateFormat?
  ) throws(InvalidCell) {
    let names = header.fields.map(\.text)
    if let name = names.first(where: { name in names.count { $0 == name } > 1 }) {
      throw InvalidCell(reason: "the column \(name) comes twice")
    }
    for name in renames.keys.sorted() + references.keys.sorted() + idColumns where !names.contains(name) {
      throw InvalidCell(reason: "there is no column \(name); there are \(names.joined(separator: ", "))")
    }
    var columns: [Column] = []
    for name in names {
      var column = try Self.column(name, key: renames[name], isID: idColumns.contains(name), schema: schema)
      if let entity = references[name] {
        guard column.destination != nil else {
          throw InvalidCell(
            reason: "the column \(name) goes to no to-one, so --reference \(name)=\(entity) says nothing")
        }
        column.type = .reference(entity: entity)
      }
      columns.append(column)
    }
    let keys = columns.compactMap(\.key)
    if let key = keys.first(where: { key in keys.count { $0 == key } > 1 }) {
      throw InvalidCell(reason: "two columns go to the key \(key)")
    }
    self.columns = columns
    self.idColumns = idColumns.compactMap { name in names.firstIndex(of: name) }
    self.dateFormat = dateFormat
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
    guard let column = columns.first(where: { $0.key == key }), case .string(let text)? = row.object[key] else {
      return nil
    }
    switch (column.type, column.destination) {
    case (.date, _) where dateFormat == nil:
      guard let format = DateFormat.suggestion(for: text) else {
        return "--date-format says how the dates of the file are written, such as '%d.%m.%Y'"
      }
      return "--date-format '\(format.format)' reads dates such as \(text)"
    case (.string, let destination?) where !text.contains("/"):
      return "--reference \(column.name)=\(destination) takes the ids of the column for objects of \(destination)"
    default:
      return nil
    }
  }

  /// The object of a record. The id is made of values as they are written, so of a date in its RFC 3339 form.
  func row(_ record: CSVRecord) throws(InvalidCell) -> Row {
    guard record.fields.count == columns.count else {
      throw InvalidCell(reason: "\(record.fields.count) fields, where the header has \(columns.count)")
    }
    var object = JSONObject()
    var texts: [String] = []
    for (column, field) in zip(columns, record.fields) {
      let value: Value?
      do {
        value = try column.type.value(field, dateFormat: dateFormat)
      } catch {
        throw InvalidCell(reason: "\(column.name) \(error.reason)")
      }
      if let key = column.key, let value { object[key] = value }
      if column.type == .date, case .string(let date)? = value {
        texts.append(date)
      } else {
        texts.append(field.text)
      }
    }
    let id = idColumns.isEmpty ? nil : try ImportID.id(of: idColumns.map { texts[$0] })
    return Row(line: record.line, id: id, object: object)
  }
}
