/// The rows of a live query at one revision. Persistent: a copy costs O(1), and shares all rows with the results before
/// and after it that have not changed.
package struct QueryResult: Sendable {
  /// What was asked for.
  package let query: Query
  /// All rows that meet the filter, those outside of the window too.
  private var rows = RankedTree<RowOrder>()
  private var sections = RankedTree<SectionOrder>()
  /// What all rows come to, those outside of the window too, where there are no sections: a value for each of the
  /// query's aggregates.
  package private(set) var aggregates: [Value] = []
  /// For how many objects the filter fails.
  package var failed = 0

  /// The result of a query that nothing meets.
  package init(nothingOf query: Query) {
    self.query = query
    if query.section == nil { aggregates = QueryFolds(of: query).values(of: nil) }
  }

  /// The result with these rows, in any order, and what they fold into.
  package init(_ query: Query, rows: [QueryRow], folds: QueryFolds, failed: Int) {
    self.query = query
    self.failed = failed
    let sorted = rows.sorted { RowOrder.precedes(.row($0), .row($1)) }
    self.rows = RankedTree(sorted: sorted)
    guard query.section != nil else {
      aggregates = folds.values(of: nil)
      return
    }
    var sections: [SectionOrder.Entry] = []
    for case let section? in sorted.lazy.map(\.section) {
      if let last = sections.last?.section, last.ordering(to: section) == .same {
        sections[sections.count - 1].rowCount += 1
        continue
      }
      sections.append(SectionOrder.Entry(section: section, aggregates: folds.values(of: section)))
    }
    self.sections = RankedTree(sorted: sections)
  }

  /// How many rows are in the window: as many as the query's limit allows.
  package var count: Int { min(query.words.limit ?? .max, rows.count) }

  /// How many sections there are, those outside of the window too.
  package var sectionCount: Int { sections.count }

  /// How many rows there are, those outside of the window too.
  package var rowCount: Int { rows.count }

  /// The rows of the nodes that two results do not share, among them all that they do not have in common: see
  /// `RankedTree.unshared`.
  package static func unshared(_ left: QueryResult, _ right: QueryResult) -> (left: [QueryRow], right: [QueryRow]) {
    RankedTree<RowOrder>.unshared(left.rows, right.rows)
  }

  /// The rows in the window, in order.
  package var window: some Sequence<QueryRow> { rows.prefix(count) }

  /// A section of the window.
  package struct WindowSection: Hashable, Sendable {
    /// The value that its rows have in common.
    package let name: Value
    /// How many of its rows are in the window.
    package let count: Int
    /// What all its rows come to, those outside of the window too: a value for each of the query's aggregates.
    package let aggregates: [Value]
  }

  /// The sections of the window, in order; nil where the query has none.
  package var windowSections: [WindowSection]? {
    guard query.section != nil else { return nil }
    var found: [WindowSection] = []
    var left = count
    for entry in sections {
      guard left > 0 else { break }
      let count = min(left, entry.rowCount)
      found.append(WindowSection(name: entry.section.name, count: count, aggregates: entry.aggregates))
      left -= count
    }
    return found
  }

  /// Where a row of this result stands in the window, nil where it is outside.
  package func rank(of row: QueryRow) -> Int? {
    guard let rank = rows.rank(of: .row(row)), rank < count else { return nil }
    return rank
  }

  /// The row at a place of the window.
  package func row(at rank: Int) -> QueryRow { rows.element(at: rank) }

  /// What clients call the place of a row.
  package func position(of row: QueryRow, at rank: Int) -> RowPosition {
    guard let section = row.section, let index = index(of: section) else { return .row(rank) }
    return .sectioned(section: index, row: rank - rows.lowerBound(of: .start(section)))
  }

  /// Where a section stands, nil where the window has no row of it.
  package func windowIndex(of section: QuerySection) -> Int? {
    rows.lowerBound(of: .start(section)) < count ? index(of: section) : nil
  }

  private func index(of section: QuerySection) -> Int? { sections.rank(of: section) }

  /// The section of this name as its rows have it, so that they all have one; else `section` itself.
  package func shared(_ section: QuerySection) -> QuerySection { sections.element(for: section)?.section ?? section }

  /// Whether more than rows and sections is different in another result: how many rows there are, or what they come to.
  package func isSummedUpLike(_ other: QueryResult) -> Bool {
    guard rowCount == other.rowCount, query.words.aggregate == other.query.words.aggregate else { return false }
    guard !query.aggregates.isEmpty else { return true }
    return aggregates == other.aggregates && windowSections == other.windowSections
  }

  // MARK: Changing

  /// Puts in a row of an object that has none.
  package mutating func insert(_ row: QueryRow) {
    guard rows.insert(row) != nil, let section = row.section else { return }
    if let index = index(of: section) {
      sections.update(at: index) { $0.rowCount += 1 }
    } else {
      sections.insert(SectionOrder.Entry(section: section))
    }
  }

  /// Takes a row out.
  package mutating func remove(_ row: QueryRow) {
    guard rows.remove(.row(row)) != nil, let section = row.section, let index = index(of: section) else { return }
    if sections.element(at: index).rowCount == 1 {
      sections.remove(at: index)
    } else {
      sections.update(at: index) { $0.rowCount -= 1 }
    }
  }

  /// Notes what the rows of a section come to, or with nil all rows of a query without sections.
  package mutating func set(_ aggregates: [Value], of section: QuerySection?) {
    guard let section else {
      self.aggregates = aggregates
      return
    }
    guard let index = sections.rank(of: section) else { return }
    sections.update(at: index) { $0.aggregates = aggregates }
  }

  /// Puts a row in the place of another one of the same object that stands where it stands.
  package mutating func replace(_ row: QueryRow, by other: QueryRow) {
    guard let rank = rows.rank(of: .row(row)) else { return }
    rows.update(at: rank) { $0 = other }
  }
}

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

  fileprivate func precedes(_ other: QueryRow) -> Bool { order.precedes(rank, other.rank) }
}

/// Rows in the order of a result: by section, and within one by the query's order.
private enum RowOrder: RankedOrder {
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
private enum SectionOrder: RankedOrder {
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

/// Where a row stands in the list that a client has.
package enum RowPosition: Hashable, Sendable {
  /// In a list without sections.
  case row(Int)
  /// In a section, and in that.
  case sectioned(section: Int, row: Int)
}
