/// A section of a live query's result: the rows that have one value for the key path that makes the sections.
package final class QuerySection: Sendable {
  /// The value that its rows have in common.
  package var name: Value { key.value }
  private let key: ValueOrder.Key

  /// The section of a value.
  package init(_ key: ValueOrder.Key) {
    self.key = key
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

/// Sections in ascending order.
enum SectionOrder: RankedOrder {
  static func key(of element: QuerySection) -> QuerySection { element }

  static func precedes(_ left: QuerySection, _ right: QuerySection) -> Bool { left.ordering(to: right) == .ascending }
}
