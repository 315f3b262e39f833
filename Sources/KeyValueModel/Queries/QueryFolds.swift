/// What the rows of a query fold into while they come, go and change: in each section, or in the whole where there are
/// none. A row costs the same however many there are, or for the least and the greatest a logarithm of it.
package struct QueryFolds: Sendable {
  private struct Group: Sendable {
    var rowCount = 0
    var folds: [RunningFold]
  }

  private let empty: [RunningFold]
  /// By what names the section; `null` alone where there are none.
  private var groups: [Value: Group] = [:]

  /// The folds of a query over no rows.
  package init(of query: Query) { empty = query.aggregates.map(\.fold) }

  /// Whether there is nothing to fold.
  package var isEmpty: Bool { empty.isEmpty }

  /// Takes a row in.
  package mutating func insert(_ row: QueryRow) {
    guard !empty.isEmpty else { return }
    change(row) { group in
      group.rowCount += 1
      for index in group.folds.indices { group.folds[index].insert(.value(row.folded[index])) }
    }
  }

  /// Takes out a row that was taken in.
  package mutating func remove(_ row: QueryRow) {
    guard !empty.isEmpty else { return }
    change(row) { group in
      group.rowCount -= 1
      for index in group.folds.indices { group.folds[index].remove(.value(row.folded[index])) }
    }
    let key = Self.key(of: row.section)
    if groups[key]?.rowCount == 0 { groups[key] = nil }
  }

  private mutating func change(_ row: QueryRow, _ body: (inout Group) -> Void) {
    body(&groups[Self.key(of: row.section), default: Group(folds: empty)])
  }

  /// What the rows of a section come to, or with nil all rows of a query without sections.
  package func values(of section: QuerySection?) -> [Value] {
    (groups[Self.key(of: section)]?.folds ?? empty).map { fold in
      if case .value(let value) = fold.value { value } else { .null }
    }
  }

  /// One section has one name, in whatever form its rows have the value.
  private static func key(of section: QuerySection?) -> Value {
    switch section?.name {
    case nil: .null
    case .reference(let reference)?: .string(reference.text)
    case let name? where name.elements != nil: .array([.string(name.json)])
    case .object(let object)?: .array([.string(Value.object(object).json)])
    case let name?: name
    }
  }
}
