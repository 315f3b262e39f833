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
  }

  struct Row: Hashable, Sendable {
    var line: Int
    var id: String
    var object: JSONObject
  }

  let columns: [Column]
  private let idColumns: [Int]
  private let dateFormat: DateFormat?

  /// A plan for a file with this header. `schema` is the entity's JSON Schema; `renames` gives the keys of columns that
  /// are named otherwise, an empty one for a column that is not written.
  init(
    header: CSVRecord, schema: JSONObject, idColumns: [String], renames: [String: String], dateFormat: DateFormat?
  ) throws(InvalidCell) {
    let names = header.fields.map(\.text)
    if let name = names.first(where: { name in names.count { $0 == name } > 1 }) {
      throw InvalidCell(reason: "the column \(name) comes twice")
    }
    for name in renames.keys.sorted() + idColumns where !names.contains(name) {
      throw InvalidCell(reason: "there is no column \(name); there are \(names.joined(separator: ", "))")
    }
    var columns: [Column] = []
    for name in names { columns.append(try Self.column(name, key: renames[name] ?? name, schema: schema)) }
    let keys = columns.compactMap(\.key)
    if let key = keys.first(where: { key in keys.count { $0 == key } > 1 }) {
      throw InvalidCell(reason: "two columns go to the key \(key)")
    }
    self.columns = columns
    self.idColumns = idColumns.compactMap { name in names.firstIndex(of: name) }
    self.dateFormat = dateFormat
  }

  private static func column(_ name: String, key: String, schema: JSONObject) throws(InvalidCell) -> Column {
    if key.isEmpty { return Column(name: name, key: nil, type: .string) }
    let properties = schema["properties"]?.asObject ?? JSONObject()
    if let property = properties[key]?.asObject {
      guard let type = ColumnType(schema: property) else { throw InvalidCell(reason: "the key \(key) is read-only") }
      return Column(name: name, key: key, type: type)
    }
    let keys = properties.members.keys.filter { !$0.hasPrefix("@") }
    throw InvalidCell(
      reason: "the entity has no key \(key) for the column \(name); it has \(keys.joined(separator: ", ")). "
        + "--map \(name)=KEY names another, --map \(name)= leaves the column out")
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
    return Row(line: record.line, id: try ImportID.id(of: idColumns.map { texts[$0] }), object: object)
  }
}
