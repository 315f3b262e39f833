import KeyValueModel

@testable import KeyValueObserving

/// Checks that a content describes the change of one list exactly, with the fewest possible moves.
struct ContentCheck {
  let before: NaiveList
  let after: NaiveList
  private let order: NaiveSort
  private let isOrderedAlike: Bool
  private let formerRows: [Reference: NaiveList.Row]
  private let presentRows: [Reference: NaiveList.Row]

  init(before: NaiveList, after: NaiveList, schema: Schema) throws {
    self.before = before
    self.after = after
    order = try NaiveSort(after.query, schema)
    isOrderedAlike =
      before.query.words.sort == after.query.words.sort && before.query.words.section == after.query.words.section
    formerRows = Dictionary(uniqueKeysWithValues: before.rows.map { ($0.reference, $0) })
    presentRows = Dictionary(uniqueKeysWithValues: after.rows.map { ($0.reference, $0) })
  }

  /// Checks a content. `state` has the objects of the list afterwards; `isNew` returns true for those created since the
  /// list before.
  func check(_ content: QueryContent, in state: ModelState, isNew: (Reference) -> Bool) throws {
    try agree(!content.isEmpty, "it says nothing")
    try agree(content.count == after.rows.count, "it counts \(content.count) rows")
    try agree(content.total == after.total, "it says \(content.total) in all")
    try agree(content.failed == after.failed, "it says that \(content.failed) fail")
    let named = Dictionary(grouping: content.changes, by: \.object)
    for (object, changes) in named { try agree(changes.count == 1, "\(object) is named \(changes.count) times") }
    let (former, present) = (before.positions, after.positions)
    for change in content.changes {
      let text = line(change)
      let isIndexed = change.index == former[change.object] && change.newIndex == present[change.object]
      try agree(isIndexed, "\(text): the places are wrong")
      try checkKind(change, exists: state.record(change.object) != nil, isNew: isNew(change.object))
      try checkRow(change, in: state)
    }
    for row in before.rows where presentRows[row.reference] == nil {
      try agree(named[row.reference] != nil, "\(row.reference) went untold")
    }
    for row in after.rows where formerRows[row.reference] == nil {
      try agree(named[row.reference] != nil, "\(row.reference) came untold")
    }
    for row in before.rows where named[row.reference] == nil {
      try agree(row.shown == presentRows[row.reference]?.shown, "\(row.reference) changed untold")
    }
    try checkMoves(Set(content.changes.filter { $0.kind == .move }.map(\.object)))
    try checkOrder(content)
  }

  private func checkKind(_ change: QueryChange, exists: Bool, isNew: Bool) throws {
    let text = line(change)
    switch (formerRows[change.object], presentRows[change.object]) {
    case (_?, nil):
      try agree(change.kind == .delete && change.reason == (exists ? .left : .deleted), "\(text): it went")
    case (nil, _?):
      try agree(change.kind == .insert && change.reason == (isNew ? .created : .entered), "\(text): it came")
    case (let former?, let present?):
      try agree(change.kind == .move || change.kind == .update, "\(text): it stays")
      try agree(change.reason == nil, "\(text): it has a reason")
      let keys = present.columns.filter { former.shown[$0] != present.shown[$0] }
      try agree(change.keys.map { $0.name(in: present.entity) } == keys, "\(text): the keys are \(keys)")
      let isSeen = !keys.isEmpty || former.shown.count != present.shown.count
      try agree(isSeen || change.kind == .move, "\(text): nothing that is shown has changed")
    case (nil, nil): throw Difference(text: "\(text): it is in neither list")
    }
  }

  private func checkRow(_ change: QueryChange, in state: ModelState) throws {
    guard let row = presentRows[change.object] else {
      return try agree(change.row == nil, "\(line(change)) has a value")
    }
    guard let shown = change.row else { throw Difference(text: "\(line(change)) has no value") }
    try agree(ClientList.row(shown, after.query).shown == row.shown, "\(line(change)) has another value")
    let revision = state.record(change.object)?.revision
    try agree(change.objectRevision == revision, "\(line(change)): another revision")
  }

  /// Checks that the rows that do not move are a longest common subsequence that contains all rows whose place has not
  /// changed.
  private func checkMoves(_ moved: Set<Reference>) throws {
    let stay = before.rows.filter { presentRows[$0.reference] != nil }
    let ranks = Dictionary(uniqueKeysWithValues: after.rows.enumerated().map { ($1.reference, $0) })
    let kept = stay.filter { !moved.contains($0.reference) }
    let keptRanks = kept.compactMap { ranks[$0.reference] }
    try agree(keptRanks == keptRanks.sorted(), "rows that are not moved are in another order")
    for row in kept { try agree(presentRows[row.reference]?.section == row.section, "\(row.reference) must move") }
    // Weighed so that a row whose place has not changed outweighs all the others.
    let weights = stay.map { row -> Int in
      guard let present = presentRows[row.reference], present.section == row.section else { return 0 }
      return isOrderedAlike && order.isInSamePlace(row, present) ? stay.count + 1 : 1
    }
    var best = [Int](repeating: 0, count: stay.count)
    for (index, row) in stay.enumerated() where weights[index] > 0 {
      let before = (0..<index).filter { (ranks[stay[$0].reference] ?? 0) < (ranks[row.reference] ?? 0) }
      best[index] = (before.map { best[$0] }.max() ?? 0) + weights[index]
    }
    let weight = zip(stay, weights).reduce(0) { $0 + (moved.contains($1.0.reference) ? 0 : $1.1) }
    try agree(weight == best.max() ?? 0, "fewer moves would do: \(moved.map(\.text).sorted())")
  }

  /// Checks the order: deletions by their former indexes, then moves, insertions and updates, each by their new
  /// indexes.
  private func checkOrder(_ content: QueryContent) throws {
    let formerRanks = Dictionary(uniqueKeysWithValues: before.rows.enumerated().map { ($1.reference, $0) })
    let presentRanks = Dictionary(uniqueKeysWithValues: after.rows.enumerated().map { ($1.reference, $0) })
    let kinds: [QueryChange.Kind] = [.delete, .move, .insert, .update]
    let keys = content.changes.map { change in
      let rank = (change.kind == .delete ? formerRanks : presentRanks)[change.object] ?? 0
      return ((kinds.firstIndex(of: change.kind) ?? 0) * 1000) + rank
    }
    try agree(keys == keys.sorted(), "the order of \(lines(content))")
  }
}
