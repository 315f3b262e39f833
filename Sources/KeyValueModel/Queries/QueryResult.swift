/// The rows of a live query at one revision. Persistent: a copy costs O(1), and shares unchanged rows with the results
/// before and after it.
package struct QueryResult: Sendable {
  /// The query that this is the result of.
  package let query: Query
  /// All rows that meet the filter, including those outside of the window.
  private var rows = RankedTree<RowOrder>()
  private var sections = RankedTree<SectionOrder>()
  /// The aggregates of all rows, including those outside of the window, one for each of the query's operators; empty if
  /// the query has sections.
  package private(set) var aggregates: [Value] = []
  /// The number of objects for which the filter fails.
  package var failed = 0

  /// Creates the result of a query that no object meets.
  package init(nothingOf query: Query) {
    self.query = query
    if query.section == nil { aggregates = QueryFolds(of: query).values(of: nil) }
  }

  /// Creates a result from rows in any order, and their aggregates.
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

  /// The number of rows in the window: at most the query's limit.
  package var count: Int { min(query.words.limit ?? .max, rows.count) }

  /// The number of sections, including those outside of the window.
  package var sectionCount: Int { sections.count }

  /// The number of rows, including those outside of the window.
  package var rowCount: Int { rows.count }

  /// Returns the rows of the nodes that two results do not share, which include all rows that the results do not have
  /// in common: see `RankedTree.unshared`.
  package static func unshared(_ left: QueryResult, _ right: QueryResult) -> (left: [QueryRow], right: [QueryRow]) {
    RankedTree<RowOrder>.unshared(left.rows, right.rows)
  }

  /// The rows in the window, in order.
  package var window: some Sequence<QueryRow> { rows.prefix(count) }

  /// A section of the window.
  package struct WindowSection: Hashable, Sendable {
    /// The value that its rows have in common.
    package let name: Value
    /// The number of its rows in the window.
    package let count: Int
    /// The aggregates of all its rows, including those outside of the window, one for each of the query's operators.
    package let aggregates: [Value]
  }

  /// The sections of the window, in order; nil if the query has none.
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

  /// Returns the position of a row in the window, or nil if it is outside.
  package func rank(of row: QueryRow) -> Int? {
    guard let rank = rows.rank(of: .row(row)), rank < count else { return nil }
    return rank
  }

  /// Returns the row at a position of the window.
  package func row(at rank: Int) -> QueryRow { rows.element(at: rank) }

  /// Returns the position of a row as clients address it.
  package func position(of row: QueryRow, at rank: Int) -> RowPosition {
    guard let section = row.section, let index = index(of: section) else { return .row(rank) }
    return .sectioned(section: index, row: rank - rows.lowerBound(of: .start(section)))
  }

  /// Returns the index of a section, or nil if none of its rows is in the window.
  package func windowIndex(of section: QuerySection) -> Int? {
    rows.lowerBound(of: .start(section)) < count ? index(of: section) : nil
  }

  private func index(of section: QuerySection) -> Int? { sections.rank(of: section) }

  /// Returns the section of this name that existing rows share, or `section` itself if there is none.
  package func shared(_ section: QuerySection) -> QuerySection { sections.element(for: section)?.section ?? section }

  /// True if another result has the same number of rows and the same aggregate operators. If there are any, their
  /// values and the sections of the window must be the same, too.
  package func isSummedUpLike(_ other: QueryResult) -> Bool {
    guard rowCount == other.rowCount, query.words.aggregate == other.query.words.aggregate else { return false }
    guard !query.aggregates.isEmpty else { return true }
    return aggregates == other.aggregates && windowSections == other.windowSections
  }

  // MARK: Changing

  /// Inserts a row of an object that has none.
  package mutating func insert(_ row: QueryRow) {
    guard rows.insert(row) != nil, let section = row.section else { return }
    if let index = index(of: section) {
      sections.update(at: index) { $0.rowCount += 1 }
    } else {
      sections.insert(SectionOrder.Entry(section: section))
    }
  }

  /// Removes a row.
  package mutating func remove(_ row: QueryRow) {
    guard rows.remove(.row(row)) != nil, let section = row.section, let index = index(of: section) else { return }
    if sections.element(at: index).rowCount == 1 {
      sections.remove(at: index)
    } else {
      sections.update(at: index) { $0.rowCount -= 1 }
    }
  }

  /// Sets the aggregates of a section, or with nil those of all rows of a query without sections.
  package mutating func set(_ aggregates: [Value], of section: QuerySection?) {
    guard let section else {
      self.aggregates = aggregates
      return
    }
    guard let index = sections.rank(of: section) else { return }
    sections.update(at: index) { $0.aggregates = aggregates }
  }

  /// Replaces a row by another one of the same object that has the same place.
  package mutating func replace(_ row: QueryRow, by other: QueryRow) {
    guard let rank = rows.rank(of: .row(row)) else { return }
    rows.update(at: rank) { $0 = other }
  }
}

/// An object in a live query's result, with its place and its columns. Immutable, so that the results of successive
/// revisions share rows.
package final class QueryRow: Sendable {
  /// The object.
  package var reference: Reference { rank.reference }
  /// The entity of the object.
  package let entity: Entity
  /// The section of the row; nil if the query has no sections.
  package let section: QuerySection?
  /// The values that order the row within its section.
  package let rank: SortOrder.Rank
  /// The values of the columns, in the order of `Query.columns(of:)`.
  package let shown: [Value]
  /// The values that the row contributes to the query's aggregates, one for each.
  package let folded: [Value]
  private let order: SortOrder

  /// Creates the row of an object.
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

  /// True if another row of the same object has the same place, in results of one query.
  package func isInSamePlace(as other: QueryRow) -> Bool {
    QuerySection.isSame(section, other.section) && rank.isSame(as: other.rank)
  }

  /// True if both rows show the same values, as JSON writes them.
  package func showsTheSame(as other: QueryRow) -> Bool {
    shown.count == other.shown.count && zip(shown, other.shown).allSatisfy { $0.isWrittenAlike($1) }
  }

  fileprivate func precedes(_ other: QueryRow) -> Bool { order.precedes(rank, other.rank) }
}

/// Rows in the order of a result: by section, and within one by the query's order.
private enum RowOrder: RankedOrder {
  /// The key of a search for rows.
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

/// A section of a live query's result: the rows that share a value of the sectioning key path.
package final class QuerySection: Sendable {
  /// The value that its rows have in common.
  package var name: Value { key.value }
  private let key: ValueOrder.Key

  /// Creates the section of a value.
  ///
  /// Values that are equal but can be written in several ways, such as JSON objects with their members in another
  /// order, 1 and 1.0, and the two zeros, are brought into one form, so that the name does not depend on which row came
  /// first.
  package init(_ key: ValueOrder.Key) {
    self.key = key.value.hasSeveralForms ? ValueOrder.plain.key(of: key.value.inOneForm) : key
  }

  /// Returns the ordering relative to another section. Values that have the same place in their order without being
  /// equal, such as two ways to write one moment, make two sections.
  package func ordering(to other: QuerySection) -> Ordering {
    if self === other { return .same }
    let ordering = key.ordering(to: other.key)
    guard case .same = ordering, name != other.name else { return ordering }
    return ValueOrder.plain.ordering(of: .string(name.json), to: .string(other.name.json))
  }

  /// True if both are the same section, or both are nil.
  package static func isSame(_ left: QuerySection?, _ right: QuerySection?) -> Bool {
    switch (left, right) {
    case (let left?, let right?): left.ordering(to: right) == .same
    case (nil, nil): true
    default: false
    }
  }
}

/// Sections in ascending order, with the aggregates of their rows.
private enum SectionOrder: RankedOrder {
  struct Entry: Sendable {
    let section: QuerySection
    /// The number of its rows, including those outside of the window.
    var rowCount = 1
    /// The aggregates of all its rows, including those outside of the window, one for each of the query's operators.
    var aggregates: [Value] = []
  }

  static func key(of element: Entry) -> QuerySection { element.section }

  static func precedes(_ left: QuerySection, _ right: QuerySection) -> Bool { left.ordering(to: right) == .ascending }
}

extension Value {
  /// True if the value contains a JSON object, or a double that is a whole number.
  fileprivate var hasSeveralForms: Bool {
    switch self {
    case .object: true
    case .array(let elements): elements.contains(where: \.hasSeveralForms)
    case .number(let number), .rounded(let number): number == number.rounded()
    default: false
    }
  }

  /// The same value with zeros positive, whole numbers as integers, and the members of its objects in the order of
  /// their names.
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

/// The position of a row in a client's list.
package enum RowPosition: Hashable, Sendable {
  /// The index in a list without sections.
  case row(Int)
  /// The index of the section, and the index within it.
  case sectioned(section: Int, row: Int)
}
