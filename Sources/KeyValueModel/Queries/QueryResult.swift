/// The rows of a live query at one revision. Persistent: a copy costs O(1), and shares all rows with the results before
/// and after it that have not changed.
package struct QueryResult: Sendable {
  /// What was asked for.
  package let query: Query
  /// All rows that meet the filter, those outside of the window too.
  private(set) var rows = RankedTree<RowOrder>()
  private(set) var sections = RankedTree<SectionOrder>()
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
