import KeyValueModel

/// Finds the changes that turn the window of one result into that of another. Looks only at rows that may differ, and
/// at those that slide over the end of the window: never at rows that merely shifted.
struct QueryDifference {
  private let old: QueryResult
  private let new: QueryResult
  /// The rows of the objects that may differ; nil if a result has none for an object.
  private let candidates: [Reference: (old: QueryRow?, new: QueryRow?)]
  /// True if rows of both results can be compared by their positions, because the queries order alike.
  private let hasSameOrder: Bool

  /// A row of either window.
  private struct Named {
    let reference: Reference
    let old: QueryRow?
    let new: QueryRow?
    let oldRank: Int?
    let newRank: Int?
    /// True if the row keeps its position among all others.
    var isKept = false
  }

  /// Creates the difference of two results, given the rows of all objects that may differ.
  init(from old: QueryResult, to new: QueryResult, candidates: [Reference: (old: QueryRow?, new: QueryRow?)]) {
    self.old = old
    self.new = new
    self.candidates = candidates
    hasSameOrder = old.query.words.sort == new.query.words.sort && old.query.words.section == new.query.words.section
  }

  /// Creates the difference of two results of which nothing is known. If one came from the other by k changes, the cost
  /// is little more than k; for two queries that differ, it is that of all rows in both windows.
  init(from old: QueryResult, to new: QueryResult) {
    var candidates: [Reference: (old: QueryRow?, new: QueryRow?)] = [:]
    if old.query == new.query {
      let (former, present) = QueryResult.unshared(old, new)
      for row in former { candidates[row.reference, default: (nil, nil)].old = row }
      for row in present { candidates[row.reference, default: (nil, nil)].new = row }
      candidates = candidates.filter { $0.value.old !== $0.value.new }
    } else {
      for row in old.window { candidates[row.reference, default: (nil, nil)].old = row }
      for row in new.window { candidates[row.reference, default: (nil, nil)].new = row }
    }
    self.init(from: old, to: new, candidates: candidates)
  }

  /// The maximum number of rows that may be named.
  var size: Int { candidates.count }

  /// Returns the changes in the order in which they are reported, without reasons, and the inserted and deleted
  /// sections.
  func changes() -> (rows: [QueryChange], sections: [SectionChange]) {
    var named = namedRows()
    markUnmovedRows(&named)
    return (rowChanges(named), sectionChanges(named))
  }

  private func namedRows() -> [Named] {
    var named: [Named] = []
    var touched = (old: 0, new: 0)
    for (reference, rows) in candidates {
      let oldRank = rows.old.flatMap(old.rank)
      let newRank = rows.new.flatMap(new.rank)
      if oldRank != nil { touched.old += 1 }
      if newRank != nil { touched.new += 1 }
      guard oldRank != nil || newRank != nil else { continue }
      named.append(Named(reference: reference, old: rows.old, new: rows.new, oldRank: oldRank, newRank: newRank))
    }
    // Rows that have not changed are in both results in the same order: a window has the first of them.
    let slid = (new.count - touched.new) - (old.count - touched.old)
    if slid > 0 {
      for (rank, row) in slidRows(of: new, slid) {
        named.append(Named(reference: row.reference, old: nil, new: row, oldRank: nil, newRank: rank))
      }
    } else if slid < 0 {
      for (rank, row) in slidRows(of: old, -slid) {
        named.append(Named(reference: row.reference, old: row, new: nil, oldRank: rank, newRank: nil))
      }
    }
    return named
  }

  /// Returns the last `count` rows of a window that have not changed.
  private func slidRows(of result: QueryResult, _ count: Int) -> [(rank: Int, row: QueryRow)] {
    var found: [(rank: Int, row: QueryRow)] = []
    var rank = result.count - 1
    while found.count < count, rank >= 0 {
      let row = result.row(at: rank)
      if candidates[row.reference] == nil { found.append((rank, row)) }
      rank -= 1
    }
    return found
  }

  /// Marks the rows that do not have to move: those with an unchanged position, and as many of the others as possible
  /// that have the same order as before, among themselves and among the unchanged ones.
  private func markUnmovedRows(_ named: inout [Named]) {
    var loose: [Int] = []
    for index in named.indices {
      let row = named[index]
      if hasSameOrder, row.oldRank != nil, row.newRank != nil, let old = row.old, let new = row.new,
        old.isInSamePlace(as: new)
      {
        named[index].isKept = true
      } else {
        loose.append(index)
      }
    }
    let gapsBefore = gaps(loose, named, \.oldRank)
    let gapsAfter = gaps(loose, named, \.newRank)
    let still = loose.filter { index in
      guard let before = gapsBefore[index], let after = gapsAfter[index] else { return false }
      return before == after && QuerySection.isSame(named[index].old?.section, named[index].new?.section)
    }
    .sorted { named[$0].oldRank ?? 0 < named[$1].oldRank ?? 0 }
    for position in LongestIncreasingRun.positions(of: still.map { named[$0].newRank ?? 0 }) {
      named[still[position]].isKept = true
    }
  }

  /// Returns, for each of the loose rows that is in a window, the number of rows before it that are not loose.
  private func gaps(_ loose: [Int], _ named: [Named], _ rank: KeyPath<Named, Int?>) -> [Int: Int] {
    let ranked = loose.compactMap { index in named[index][keyPath: rank].map { (rank: $0, index: index) } }
      .sorted { $0.rank < $1.rank }
    var gaps: [Int: Int] = [:]
    for (position, entry) in ranked.enumerated() { gaps[entry.index] = entry.rank - position }
    return gaps
  }

  // MARK: Changes

  private func rowChanges(_ named: [Named]) -> [QueryChange] {
    var deletions: [(rank: Int, change: QueryChange)] = []
    var moves: [(rank: Int, change: QueryChange)] = []
    var insertions: [(rank: Int, change: QueryChange)] = []
    var updates: [(rank: Int, change: QueryChange)] = []
    for row in named {
      let index = row.old.flatMap { former in row.oldRank.map { old.position(of: former, at: $0) } }
      let newIndex = row.new.flatMap { present in row.newRank.map { new.position(of: present, at: $0) } }
      let keys = changedKeys(row)
      func change(_ kind: QueryChange.Kind) -> QueryChange {
        QueryChange(
          kind: kind, object: row.reference, index: index, newIndex: newIndex, keys: keys ?? [],
          row: newIndex == nil ? nil : row.new)
      }
      switch (row.oldRank, row.newRank) {
      case (let rank?, nil): deletions.append((rank, change(.delete)))
      case (nil, let rank?): insertions.append((rank, change(.insert)))
      case (_?, let rank?) where !row.isKept: moves.append((rank, change(.move)))
      case (_?, let rank?) where keys != nil: updates.append((rank, change(.update)))
      default: break
      }
    }
    return [deletions, moves, insertions, updates].flatMap { changes in
      changes.sorted { $0.rank < $1.rank }.map(\.change)
    }
  }

  /// Returns the columns of which a row shows other values than before; nil if it shows the same.
  private func changedKeys(_ row: Named) -> [QueryColumn]? {
    guard let former = row.old, let present = row.new, row.oldRank != nil, row.newRank != nil, former !== present
    else { return nil }
    let formerColumns = old.query.columns(of: former.entity)
    let presentColumns = new.query.columns(of: present.entity)
    let values = Dictionary(uniqueKeysWithValues: zip(formerColumns, former.shown))
    let changed = zip(presentColumns, present.shown).filter { column, value in
      values[column].map { !$0.isWrittenAlike(value) } ?? true
    }.map(\.0)
    return changed.isEmpty && formerColumns == presentColumns ? nil : changed
  }

  /// Returns the inserted and deleted sections. Only a section that a row entered or left can be one of these.
  private func sectionChanges(_ named: [Named]) -> [SectionChange] {
    var insertions: [(index: Int, section: QuerySection)] = []
    var deletions: [(index: Int, section: QuerySection)] = []
    let touched = named.filter { !$0.isKept }.flatMap { [$0.old?.section, $0.new?.section].compactMap { $0 } }
      .sorted { $0.ordering(to: $1) == .ascending }
    var last: QuerySection?
    for section in touched where last.map({ $0.ordering(to: section) != .same }) ?? true {
      last = section
      switch (old.windowIndex(of: section), new.windowIndex(of: section)) {
      case (let index?, nil): deletions.append((index, section))
      case (nil, let index?): insertions.append((index, section))
      default: break
      }
    }
    return insertions.map { .insert(name: $0.section.name, newIndex: $0.index) }
      + deletions.map { .delete(name: $0.section.name, index: $0.index) }
  }
}

extension QueryChange {
  /// Returns the change with its reason, and with the revision of the row's object.
  func explained(in state: some ObjectReader, isNew: (Reference) -> Bool) -> QueryChange {
    var change = self
    switch kind {
    case .delete: change.reason = state.record(object) == nil ? .deleted : .left
    case .insert: change.reason = isNew(object) ? .created : .entered
    case .move, .update: break
    }
    if row != nil { change.objectRevision = state.record(object)?.revision ?? 0 }
    return change
  }
}

/// The longest subsequence whose elements increase: the largest set of reordered rows that can stay where they are.
enum LongestIncreasingRun {
  /// Returns the positions of its elements, ascending. O(n log n); if there are several of one length, always the same
  /// one.
  static func positions(of numbers: [Int]) -> [Int] {
    // For each length the position of the least number that a run of this length can end with.
    var ends: [Int] = []
    var previous = [Int?](repeating: nil, count: numbers.count)
    for (position, number) in numbers.enumerated() {
      let length = ends.sortedCount { numbers[$0] < number }
      previous[position] = length > 0 ? ends[length - 1] : nil
      if length == ends.count { ends.append(position) } else { ends[length] = position }
    }
    var run: [Int] = []
    var position = ends.last
    while let current = position {
      run.append(current)
      position = previous[current]
    }
    return run.reversed()
  }
}
