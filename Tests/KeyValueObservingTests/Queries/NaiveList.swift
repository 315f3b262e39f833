import KeyValueModel

@testable import KeyValueObserving

/// The expected result of a live query, found by evaluating every object. It shares only the evaluation of the filter
/// and of key paths with the code under test.
struct NaiveList {
  /// A row of the window.
  struct Row {
    let reference: Reference
    /// The common value of its section, or nil if the query has no sections.
    let sectionValue: Value?
    let sorts: [Value]
    let entity: Entity
    /// The names of the columns: keys in the order of the entity, then key paths.
    let columns: [String]
    /// The shown values, by the name of the column.
    let shown: [String: Value]

    /// The section as clients know it.
    var section: String? { sectionValue?.json }
  }

  let query: Query
  let rows: [Row]
  /// The number of rows, including those outside of the window.
  let total: Int
  /// The number of objects for which the filter fails.
  let failed: Int
  /// The aggregates over all rows of each section in the window, or over all rows if the query has no sections.
  let aggregates: [[Value]]

  init(_ query: Query, in state: ModelState) throws {
    self.query = query
    let order = try NaiveSort(query, state.schema)
    var rows: [Row] = []
    var failed = 0
    for reference in state.references(of: query.entity) {
      guard let record = state.record(reference) else { continue }
      var cost = Int.max
      let verdict = try query.filter?.verdict(on: reference, in: state, cost: &cost) ?? .met
      if verdict == .failed { failed += 1 }
      guard verdict == .met else { continue }
      rows.append(
        Row(
          reference: reference, sectionValue: order.section.map { state.value(of: reference, at: $0.path) },
          sorts: order.keys.map { state.value(of: reference, at: $0.path) }, entity: record.entity,
          columns: [], shown: [:]))
    }
    rows.sort { order.precedes($0, $1) }
    let window = try rows.prefix(query.words.limit ?? .max).map { row in
      let columns = Self.columns(query, of: row.entity)
      let shown = try columns.map { name in
        (name, state.value(of: row.reference, at: try state.schema.resolve(name, from: row.entity)))
      }
      return Row(
        reference: row.reference, sectionValue: row.sectionValue, sorts: row.sorts, entity: row.entity,
        columns: columns, shown: Dictionary(uniqueKeysWithValues: shown))
    }
    self.rows = window
    (total, self.failed) = (rows.count, failed)
    var names: [String?] = []
    for name in window.map(\.section) where names.last != name { names.append(name) }
    aggregates = try (query.words.section == nil ? [nil] : names).map { name in
      try Self.aggregates(query, of: rows.filter { $0.section == name }.map(\.reference), in: state)
    }
  }

  private static func columns(_ query: Query, of entity: Entity) -> [String] {
    let own = entity.keys.map(\.name)
    guard let names = query.words.keys else { return own }
    let paths = names.filter { !own.contains($0) }
    return own.filter(names.contains) + paths.indices.filter { paths.firstIndex(of: paths[$0]) == $0 }.map { paths[$0] }
  }

  private static func aggregates(
    _ query: Query, of references: [Reference], in state: ModelState
  ) throws -> [Value] {
    var texts: [String] = []
    for text in (query.words.aggregate ?? "").split(separator: ",") where !texts.contains(String(text)) {
      texts.append(String(text))
    }
    return try texts.map { text in
      let parts = text.split(separator: ".", maxSplits: 1).map(String.init)
      guard parts.count > 1 else { return .integer(Int64(references.count)) }
      let path = try state.schema.resolve(parts[1], from: query.entity)
      let value = OracleFold.value(of: parts[0], over: references.map { state.value(of: $0, at: path) })
      // A sum of numbers is a number, even if there are none.
      if case .integer(let whole) = value, path.type == .attribute(.number) { return .number(Double(whole)) }
      return value
    }
  }

  /// The sections with the number of their rows.
  var sections: [(name: String, count: Int)] {
    var sections: [(name: String, count: Int)] = []
    for row in rows {
      guard let name = row.section else { continue }
      if sections.last?.name == name { sections[sections.count - 1].count += 1 } else { sections.append((name, 1)) }
    }
    return sections
  }

  /// The position of each object, as clients name it.
  var positions: [Reference: RowPosition] {
    var positions: [Reference: RowPosition] = [:]
    var (section, row) = (-1, 0)
    for (index, entry) in rows.enumerated() {
      guard let name = entry.section else {
        positions[entry.reference] = .row(index)
        continue
      }
      if section < 0 || rows[index - 1].section != name { (section, row) = (section + 1, 0) }
      positions[entry.reference] = .sectioned(section: section, row: row)
      row += 1
    }
    return positions
  }

  /// Returns true if a client sees the same. A change of `failed` alone is not sent.
  func looksLike(_ other: NaiveList) -> Bool {
    rows.count == other.rows.count && total == other.total
      && query.words.aggregate == other.query.words.aggregate
      && (query.words.aggregate == nil || aggregates == other.aggregates)
      && zip(rows, other.rows).allSatisfy {
        $0.reference == $1.reference && $0.section == $1.section && $0.shown == $1.shown
      }
  }
}
