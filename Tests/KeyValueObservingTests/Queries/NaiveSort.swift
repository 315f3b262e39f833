import KeyValueModel

/// The order of a query's rows, read from its words.
struct NaiveSort {
  struct Key {
    let path: ModelKeyPath
    let isDescending: Bool
    let isDate: Bool

    init(_ text: String, _ query: Query, _ schema: Schema) throws {
      isDescending = text.hasPrefix("-")
      path = try schema.resolve(isDescending ? String(text.dropFirst()) : text, from: query.entity)
      isDate = path.type == .attribute(.date)
    }
  }

  let section: Key?
  let keys: [Key]

  init(_ query: Query, _ schema: Schema) throws {
    section = try query.words.section.map { try Key($0, query, schema) }
    keys = try (query.words.sort ?? "").split(separator: ",").map { try Key(String($0), query, schema) }
  }

  /// Orders by section, ascending, equal ones by their text; then by the keys; then by reference.
  func precedes(_ left: NaiveList.Row, _ right: NaiveList.Row) -> Bool {
    if let section, let one = left.sectionValue, let other = right.sectionValue, left.section != right.section {
      let order = NaiveOrder.compare(one, other, asDates: section.isDate)
      return order != 0 ? order < 0 : Array(one.json.utf8).lexicographicallyPrecedes(Array(other.json.utf8))
    }
    for (key, (one, other)) in zip(keys, zip(left.sorts, right.sorts)) {
      let order = NaiveOrder.compare(one, other, asDates: key.isDate)
      if order != 0 { return (order < 0) != key.isDescending }
    }
    return Array(left.reference.text.utf8).lexicographicallyPrecedes(Array(right.reference.text.utf8))
  }

  /// Returns true if no value that orders a row has changed.
  func isInSamePlace(_ left: NaiveList.Row, _ right: NaiveList.Row) -> Bool {
    left.section == right.section
      && zip(keys, zip(left.sorts, right.sorts)).allSatisfy {
        NaiveOrder.compare($1.0, $1.1, asDates: $0.isDate) == 0
      }
  }
}
