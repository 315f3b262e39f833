/// A section of a live query's result: the rows that have one value for the key path that makes the sections.
package final class QuerySection: Sendable {
  /// The value that its rows have in common.
  package var name: Value { key.value }
  private let key: ValueOrder.Key

  /// The section of a value. Of values that are equal and written in several ways, as JSON objects with their members
  /// in another order, 1 and 1.0, and the two zeros, one stands for all, so that its name does not depend on which came
  /// first.
  package init(_ key: ValueOrder.Key) {
    self.key = key.value.hasSeveralForms ? ValueOrder.plain.key(of: key.value.inOneForm) : key
  }

  /// How it stands to another. Values that only have the same place in their order, as two ways to write one moment,
  /// make two sections.
  package func ordering(to other: QuerySection) -> Ordering {
    if self === other { return .same }
    let ordering = key.ordering(to: other.key)
    guard case .same = ordering, name != other.name else { return ordering }
    return ValueOrder.plain.ordering(of: .string(name.json), to: .string(other.name.json))
  }

  /// Whether both are the same section, or neither is one.
  package static func isSame(_ left: QuerySection?, _ right: QuerySection?) -> Bool {
    switch (left, right) {
    case (let left?, let right?): left.ordering(to: right) == .same
    case (nil, nil): true
    default: false
    }
  }
}

/// Sections in ascending order, with what their rows come to.
enum SectionOrder: RankedOrder {
  struct Entry: Sendable {
    let section: QuerySection
    /// How many rows it has, those outside of the window too.
    var rowCount = 1
    /// What all its rows come to, those outside of the window too: a value for each of the query's aggregates.
    var aggregates: [Value] = []
  }

  static func key(of element: Entry) -> QuerySection { element.section }

  static func precedes(_ left: QuerySection, _ right: QuerySection) -> Bool { left.ordering(to: right) == .ascending }
}

extension Value {
  /// Whether there is a JSON object in it, or a double that is a whole number.
  fileprivate var hasSeveralForms: Bool {
    switch self {
    case .object: true
    case .array(let elements): elements.contains(where: \.hasSeveralForms)
    case .number(let number), .rounded(let number): number == number.rounded()
    default: false
    }
  }

  /// The same value, zeros positive, whole numbers as integers, and the members of its objects in the order of their
  /// names.
  fileprivate var inOneForm: Value {
    switch self {
    case .number(0), .rounded(0): return .integer(0)
    case .number, .rounded: return asWritten
    case .object(let object):
      var ordered = JSONObject()
      let names = object.members.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      for name in names { ordered[name] = object[name]?.inOneForm }
      return .object(ordered)
    case .array(let elements): return .array(elements.map(\.inOneForm))
    default: return self
    }
  }
}
