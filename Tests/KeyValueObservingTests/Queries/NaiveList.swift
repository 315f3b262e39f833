import KeyValueModel

@testable import KeyValueObserving

/// What a live query is to show, found by looking at every object: shares nothing with the code under test but the
/// evaluation of the filter and of key paths.
struct NaiveList {
  /// A row of the window.
  struct Row {
    let reference: Reference
    /// The value that its section has in common; nil where there are no sections.
    let sectionValue: Value?
    let sorts: [Value]
    let entity: Entity
    /// What is shown, by the index of the key.
    let shown: [Int: Value]

    /// The section as clients know it.
    var section: String? { sectionValue?.json }
  }

  let query: Query
  let rows: [Row]

  init(_ query: Query, in state: ModelState) throws {
    self.query = query
    let order = try NaiveSort(query, state.schema)
    var rows: [Row] = []
    for reference in state.references(of: query.entity) {
      guard let record = state.record(reference) else { continue }
      var cost = Int.max
      if let filter = query.filter, try !filter.isMet(by: reference, in: state, cost: &cost) { continue }
      rows.append(
        Row(
          reference: reference, sectionValue: order.section.map { state.value(of: reference, at: $0.path) },
          sorts: order.keys.map { state.value(of: reference, at: $0.path) }, entity: record.entity, shown: [:]))
    }
    rows.sort { order.precedes($0, $1) }
    self.rows = rows.prefix(query.words.limit ?? .max).map { row in
      let names = query.words.keys ?? row.entity.keys.map(\.name)
      let keys = names.compactMap { row.entity.indexOfKey($0) }
      let shown = keys.map { ($0, state.value(of: row.reference, key: $0)) }
      return Row(
        reference: row.reference, sectionValue: row.sectionValue, sorts: row.sorts, entity: row.entity,
        shown: Dictionary(shown, uniquingKeysWith: { first, _ in first }))
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

  /// What a client calls the place of each object.
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

  /// Whether a client sees the same.
  func looksLike(_ other: NaiveList) -> Bool {
    rows.count == other.rows.count
      && zip(rows, other.rows).allSatisfy {
        $0.reference == $1.reference && $0.section == $1.section && $0.shown == $1.shown
      }
  }
}
