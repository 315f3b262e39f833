import KeyValueModel
import KeywayClient
import OrderedCollections
import Support

/// Imports the rows of a file, several at a time.
///
/// It works in rounds: a number of rows is read, distributed to the workers by id, and written. Rows with the same id
/// go to the same worker, in the order of the file, and no more than one round is in memory.
struct Importer {
  /// The number of rows per worker in a round: large enough that waiting for the slowest worker costs little.
  private static let rowsPerWorker = 128

  let client: Client
  let entity: String
  let plan: ImportPlan
  let workers: Int
  var conflicts = ConflictRule.replace
  /// True if the import continues after refused rows.
  var keepsGoing = false

  /// Imports all rows, and reports the number of rows and bytes after each round. Throws an `ImportFailure` with the
  /// first line of the file that cannot be read or that the server refuses. No line below it is begun afterwards. With
  /// `keepsGoing`, throws only if the rest of the file cannot be parsed, or for a failure that is not the fault of the
  /// row.
  func run(_ table: inout CSVFile, progress: (_ rows: Int, _ bytes: Int) -> Void) async throws -> ImportTally {
    var tally = ImportTally()
    var ids = KnownIDs()
    var isAtEnd = false
    while !isAtEnd {
      var queues = [[ImportPlan.Row]](repeating: [], count: workers)
      var failures: [ImportError] = []
      var refusals: [ImportError] = []
      do throws(ImportError) {
        isAtEnd = try !fill(&queues, &refusals, &ids, from: &table)
      } catch {
        // The rows before the error are written first: an import stops at a line, not somewhere above it.
        failures.append(error)
      }
      for outcome in try await write(queues) {
        tally.rows += outcome.tally.rows
        tally.skipped += outcome.tally.skipped
        refusals += outcome.refusals
        if let failure = outcome.failure { failures.append(failure) }
      }
      tally.refused.add(refusals)
      progress(tally.rows, table.file.bytesRead)
      if let first = failures.min(by: { $0.line < $1.line }) {
        throw ImportFailure(file: table.file.name, cause: first, rows: tally.rows)
      }
    }
    return tally
  }

  /// Reads a round. Returns false at the end of the file.
  private func fill(
    _ queues: inout [[ImportPlan.Row]], _ refusals: inout [ImportError], _ ids: inout KnownIDs,
    from table: inout CSVFile
  ) throws(ImportError) -> Bool {
    for _ in 0..<(workers * Self.rowsPerWorker) {
      guard let record = try table.next() else { return false }
      do throws(ImportError) {
        let row = try InvalidCell.located(line: record.line) { () throws(InvalidCell) in
          let row = try plan.row(record)
          if let id = row.id { try ids.insert(id, of: row.idParts, line: row.line) }
          return row
        }
        queues[Self.shard(row.id ?? String(row.line), of: workers)].append(row)
      } catch {
        guard keepsGoing else { throw error }
        refusals.append(error)
      }
    }
    return true
  }

  /// Returns the worker of an id, by FNV-1a, which needs no seed, so that a run can be repeated.
  static func shard(_ id: String, of workers: Int) -> Int {
    let hash = id.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return Int(hash % UInt64(workers))
  }

  private typealias Outcome = (tally: ImportTally, refusals: [ImportError], failure: ImportError?)

  private func write(_ queues: [[ImportPlan.Row]]) async throws -> [Outcome] {
    // The first line that has failed so far. Lines below it are not written.
    let end = Locked(Int.max)
    return try await withThrowingTaskGroup(of: Outcome.self) { group in
      for queue in queues where !queue.isEmpty {
        group.addTask { try await write(queue, until: end) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  private func write(_ queue: [ImportPlan.Row], until end: Locked<Int>) async throws -> Outcome {
    var tally = ImportTally()
    var refusals: [ImportError] = []
    for row in queue where row.line < end.withLock({ $0 }) {
      switch await write(row) {
      case .written: tally.rows += 1
      case .skipped: tally.skipped += 1
      case .refused(let error) where keepsGoing: refusals.append(error)
      case .refused(let error), .failed(let error):
        end.withLock { $0 = min($0, row.line) }
        return (tally, refusals, error)
      }
    }
    return (tally, refusals, nil)
  }

  /// The outcome of a row.
  private enum Fate {
    case written, skipped
    /// The server refused this row. Others may succeed.
    case refused(ImportError)
    /// No response, or one that does not concern the row.
    case failed(ImportError)
  }

  private func write(_ row: ImportPlan.Row) async -> Fate {
    let body = Array(Value.object(row.object).json.utf8)
    do {
      if let id = row.id {
        let isMadeOnly = conflicts != .replace || plan.leavesRelationships
        if conflicts == .replace, plan.leavesRelationships, try await isReplaced(id, row) { return .written }
        let headers = isMadeOnly ? ["If-None-Match": "*"] : [:]
        _ = try await client.send("PUT", "/v1/objects/\(entity)/\(id)", body: body, headers: headers)
      } else {
        _ = try await client.send("POST", "/v1/objects/\(entity)", body: body)
      }
      return .written
    } catch let problem as Problem {
      if problem.status == 412, let id = row.id {
        if conflicts == .skip { return .skipped }
        return .refused(ImportError(line: row.line, reason: "\(entity)/\(id) already exists"))
      }
      let hint = problem.code == "invalid-value" ? problem.keyPath.flatMap { plan.hint(forKey: $0, of: row) } : nil
      let error = ImportError(line: row.line, reason: "\(problem)", hint: hint)
      return Self.statusesOfRows.contains(problem.status) ? .refused(error) : .failed(error)
    } catch {
      return .failed(ImportError(line: row.line, reason: "\(error)"))
    }
  }

  /// Replaces an object except some relationships, which stay as they are. Returns false if it does not exist.
  private func isReplaced(_ id: String, _ row: ImportPlan.Row) async throws -> Bool {
    guard let object = Reference(entity: entity, id: id) else { return false }
    let body = TransactionBody.bodies(of: plan.replacement(of: object, by: row), maximumBytes: .max)
    do {
      for part in body { _ = try await client.send("POST", "/v1/transactions", body: part.bytes) }
      return true
    } catch var problem as Problem {
      if problem.code == "unknown-object" { return false }
      // The line is more useful than the index of the operation.
      problem.operation = nil
      throw problem
    }
  }

  /// The statuses that refuse a row for its contents. All others would refuse every row.
  private static let statusesOfRows: Set<Int> = [400, 403, 409, 413, 422]
}

/// The plan to make objects from the rows of one file, determined by the header and the schema before anything is
/// written.
struct ImportPlan: Sendable {
  struct Column: Hashable, Sendable {
    var name: String
    /// The key that the column sets, or nil for a column that is only a part of the id.
    var key: String?
    var type: ColumnType
    /// The entity of the to-one that the column sets.
    var destination: String?
    /// True for a column without a name whose number no option names: all its fields must be empty.
    var isUnnamed = false
  }

  struct Row: Hashable, Sendable {
    var line: Int
    /// The id, or nil if the server makes it.
    var id: String?
    /// The texts from which the id is made.
    var idParts: [String] = []
    var object: JSONObject
  }

  let columns: [Column]
  /// True if the entity has a relationship with an inverse that no column sets. When an object is replaced, it is left
  /// to its other side.
  let leavesRelationships: Bool
  private let keys: OrderedDictionary<String, ImportKey>
  private let idColumns: [Int]
  private let rules: FieldRules
  /// The minimum number of fields of a record.
  private let leastFields: Int

  /// Creates a plan for a file with this header. `schema` is the entity's JSON Schema. `renames` has the keys of
  /// columns with other names, empty for a column to leave out, and `references` the entities of columns with ids.
  /// Without `idColumns` the server makes the ids. A column in `idColumns` needs no key. A column without a name is
  /// named by its number.
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
            reason: "the column \(name) does not set a to-one, so --reference \(name)=\(entity) has no effect")
        }
        column.type = .reference(entity: entity)
      }
      columns.append(column)
    }
    let given = columns.compactMap(\.key)
    if let key = given.first(where: { key in given.count { $0 == key } > 1 }) {
      throw InvalidCell(reason: "two columns set the key \(key)")
    }
    let keys = ImportSchema.keys(in: schema["properties"]?.asObject ?? JSONObject())
    leavesRelationships = keys.contains { !given.contains($0.key) && $0.value.inverse != nil }
    self.keys = keys
    self.columns = columns
    self.idColumns = idColumns.compactMap { names.firstIndex(of: $0) }
    self.rules = rules
    leastFields = (columns.lastIndex { !$0.isUnnamed } ?? 0) + 1
  }

  /// Returns the names of the columns. A column without one is named by its number if the command line uses that, else
  /// nil.
  private static func names(_ header: CSVRecord, called: [String]) throws(InvalidCell) -> [String?] {
    let given = header.fields.map { $0.text.allSatisfy(\.isWhitespace) ? nil : $0.text }
    let names = given.compactMap(\.self)
    guard !names.isEmpty else { throw InvalidCell(reason: "the first record has no column names") }
    if let name = names.first(where: { name in names.count { $0 == name } > 1 }) {
      throw InvalidCell(reason: "the column \(name) appears twice")
    }
    let result = given.enumerated().map { index, name in
      name ?? (called.contains("\(index + 1)") && !names.contains("\(index + 1)") ? "\(index + 1)" : nil)
    }
    if let name = called.sorted().first(where: { !result.contains($0) }) {
      throw InvalidCell(
        reason: "the header has no column \(name); it has \(names.joined(separator: ", "))",
        hint: delimiterHint(header))
    }
    return result
  }

  /// Returns the option for a header whose only name contains another delimiter.
  private static func delimiterHint(_ header: CSVRecord) -> String? {
    guard header.fields.count == 1, let name = header.fields.first?.text else { return nil }
    let others = [(";", "';'"), ("\t", "tab"), ("|", "'|'"), (",", ",")]
    return others.first { name.contains($0.0) }.map { "--delimiter \($0.1) splits the fields of the file" }
  }

  /// Returns the column with a name and the key that the command line assigns to it. An empty key leaves the column
  /// out. A column of the id needs no key.
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

  /// Returns the option with which the server would accept the refused value of a key, or nil if none is known.
  func hint(forKey key: String, of row: Row) -> String? {
    guard let column = columns.first(where: { $0.key == key }), let destination = column.destination,
      column.type == .string, let text = row.object[key]?.asString, !text.contains("/")
    else { return nil }
    return "--reference \(column.name)=\(destination) takes the ids of the column for objects of \(destination)"
  }

  /// Returns the object of a record. The id is made from values as written, except dates, which have their RFC 3339
  /// form, and integers, which are reduced to their digits.
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

  /// Returns the operations that set an existing object to the values of a row. Missing keys are set to their defaults,
  /// except a relationship with an inverse that no column sets, which is not changed.
  func replacement(of object: Reference, by row: Row) -> [PlannedOperation] {
    let given = Set(columns.compactMap(\.key))
    var values = JSONObject()
    var documents: [PlannedOperation] = []
    for (name, key) in keys where key.kind != .computed {
      guard given.contains(name) || key.inverse == nil else { continue }
      let value = row.object[name] ?? key.defaultValue
      if key.kind == .document {
        // A document is set, since a patch would merge it.
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
