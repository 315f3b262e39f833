/// An object in a live query's result: where it stands, and what is shown of it. Immutable, so that the result of one
/// revision shares the rows of the one before.
package final class QueryRow: Sendable {
  /// The object.
  package var reference: Reference { rank.reference }
  /// What the object is.
  package let entity: Entity
  /// The section that it is in; nil where there are none.
  package let section: QuerySection?
  /// What it is ordered by within its section.
  package let rank: SortOrder.Rank
  /// The values that are shown, in the order of `Query.columns(of:)`.
  package let shown: [Value]
  /// What it adds to each of the query's aggregates.
  package let folded: [Value]
  private let order: SortOrder

  /// The row of an object.
  package init(
    entity: Entity, section: QuerySection?, order: SortOrder, rank: SortOrder.Rank, shown: [Value], folded: [Value]
  ) {
    self.entity = entity
    self.section = section
    self.order = order
    self.rank = rank
    self.shown = shown
    self.folded = folded
  }

  /// Whether it stands where another row of the same object stands, in results of one query.
  package func isInSamePlace(as other: QueryRow) -> Bool {
    QuerySection.isSame(section, other.section) && rank.isSame(as: other.rank)
  }

  /// Whether the same is shown of both, as JSON writes it.
  package func showsTheSame(as other: QueryRow) -> Bool {
    shown.count == other.shown.count && zip(shown, other.shown).allSatisfy { $0.isWrittenAlike($1) }
  }

  func precedes(_ other: QueryRow) -> Bool { order.precedes(rank, other.rank) }
}

/// Rows in the order of a result: by section, and within one by the query's order.
enum RowOrder: RankedOrder {
  /// What rows are found by.
  enum Key: Sendable {
    /// A row.
    case row(QueryRow)
    /// The place before the first row of a section.
    case start(QuerySection)

    fileprivate var section: QuerySection? {
      switch self {
      case .row(let row): row.section
      case .start(let section): section
      }
    }
  }

  static func key(of element: QueryRow) -> Key { .row(element) }

  static func precedes(_ left: Key, _ right: Key) -> Bool {
    if let leftSection = left.section, let rightSection = right.section {
      switch leftSection.ordering(to: rightSection) {
      case .ascending: return true
      case .descending: return false
      case .same: break
      }
    }
    switch (left, right) {
    case (.row(let left), .row(let right)): return left.precedes(right)
    case (.start, .row): return true
    case (_, .start): return false
    }
  }
}
