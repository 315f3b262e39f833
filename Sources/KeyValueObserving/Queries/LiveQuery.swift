package import KeyValueModel

/// A query with its result, kept up to date commit by commit. A value that depends on nothing but the states that it is
/// shown: evaluated anew at the same revision, it is the same.
///
/// A commit costs what the objects that it touches cost, and for each row that changes a logarithm of their number.
package struct LiveQuery: Sendable {
  /// What is asked for.
  package let query: Query
  /// The rows as they are.
  package private(set) var result: QueryResult
  let reach: QueryReach
  private var rows: [Reference: QueryRow] = [:]
  /// The objects for which the filter fails.
  private var failing: Set<Reference> = []
  /// What the rows come to.
  private var folds: QueryFolds
  private var paths = QueryPaths()
  /// What a row costs for the computed keys that it shows, by the index of its entity.
  private let computedCosts: [Int: Int]

  /// What looking at an object costs a commit, where its own keys say all and where others are read through it; what a
  /// row that changes costs; and what a computed key of a row does, however it is computed.
  private static let (objectCost, farObjectCost, rowCost, computedCost) = (1, 10, 10, 20)
  /// What it costs to ask whether an object may be read.
  private static let ruleCost = 10
  /// So much text in a row costs one step more.
  private static let textBytesPerStep = 64
  /// So many aggregates of sections, which are all told, cost one step.
  private static let aggregatesPerStep = 8

  /// The query at one revision: of `candidates`, which are all objects that may meet the filter now, and, where it
  /// reads beyond them, all that may do so before they are set themselves.
  ///
  /// `cost` is what it may still cost, in steps of the filter: an object that is looked at counts as one more, and a
  /// row as ten. Throws `malformed-filter` where that does not suffice, and where `isAbandoned`, which is asked once
  /// for many objects, says that the query is no longer wanted.
  package init(
    _ query: Query, candidates: some Sequence<Reference>, in reader: some ObjectReader, _ schema: Schema,
    cost: inout Int, _ isAbandoned: () -> Bool
  ) throws(ModelError) {
    self.query = query
    result = QueryResult(nothingOf: query)
    folds = QueryFolds(of: query)
    reach = QueryReach(of: query, in: schema)
    computedCosts = Dictionary(
      uniqueKeysWithValues: schema.family(of: query.entity).map { entity in
        let count = query.shownKeys(of: entity).count { entity.keys[$0].storage == nil } + query.paths.count
        return (entity.index, count * Self.computedCost)
      })
    if reach.isFar {
      for (number, reference) in candidates.enumerated() {
        try Self.check(number, isAbandoned)
        follow(reference, in: reader)
      }
      paths.settle(in: reader)
    }
    var sections: [Value: QuerySection] = [:]
    for (number, reference) in candidates.enumerated() {
      try Self.check(number, isAbandoned)
      let finding = try finding(reference, in: reader, cost: &cost, section: { Self.shared($0, in: &sections) })
      cost -= finding.row == nil ? 1 : 11 + query.aggregates.count
      guard cost >= 0 else { throw ModelError(.malformedFilter, "the query costs more than request.steps allows") }
      note(finding, of: reference)
      if let row = finding.row { folds.insert(row) }
    }
    result = QueryResult(query, rows: Array(rows.values), folds: folds, failed: failing.count)
  }

  /// What is found of an object.
  private enum Finding {
    case row(QueryRow)
    /// It is no row.
    case none
    /// The filter fails for it.
    case failure

    var row: QueryRow? {
      if case .row(let row) = self { row } else { nil }
    }
  }

  private mutating func note(_ finding: Finding, of reference: Reference) {
    rows[reference] = finding.row
    if case .failure = finding { failing.insert(reference) } else { failing.remove(reference) }
  }

  /// After so many objects it is asked again whether the query is wanted.
  private static let objectsPerCheck = 256

  private static func check(_ number: Int, _ isAbandoned: () -> Bool) throws(ModelError) {
    guard number % objectsPerCheck == objectsPerCheck - 1, isAbandoned() else { return }
    throw ModelError(.malformedFilter, "the query was given up before it was evaluated")
  }

  /// One section for all rows of it that are there at the beginning.
  private static func shared(_ section: QuerySection, in sections: inout [Value: QuerySection]) -> QuerySection {
    if let known = sections[section.name] { return known }
    sections[section.name] = section
    return section
  }

  /// Takes in what a commit did, given the state after it; gives the changes of the window, without reasons.
  mutating func apply(
    _ touch: QueryTouch, in reader: some ObjectReader, cost: inout Int
  ) throws(ModelError) -> (rows: [QueryChange], sections: [SectionChange]) {
    var objects = touch.objects
    if reach.isFar {
      objects.formUnion(paths.update(touch.changes, in: reader))
      for reference in objects { follow(reference, in: reader) }
      paths.settle(in: reader)
      paths.sweep()
    }
    let before = result
    // The sections that rows came to, left or moved in, each by one of its rows.
    var folded: [ObjectIdentifier?: QueryRow] = [:]
    var candidates: [Reference: (old: QueryRow?, new: QueryRow?)] = [:]
    for reference in objects {
      let old = rows[reference]
      try spend(reach.isFar ? Self.farObjectCost : Self.objectCost, of: &cost)
      let finding = try finding(reference, in: reader, cost: &cost, section: result.shared)
      let new = finding.row
      note(finding, of: reference)
      switch (old, new) {
      case (nil, nil): continue
      case (let old?, nil):
        result.remove(old)
      case (nil, let new?):
        result.insert(new)
      case (let old?, let new?):
        if old.isInSamePlace(as: new) {
          if old.showsTheSame(as: new), old.folded == new.folded {
            // The result keeps the row that it has, and so must what later rows are compared with.
            rows[reference] = old
            continue
          }
          result.replace(old, by: new)
        } else {
          result.remove(old)
          result.insert(new)
        }
      }
      if let new { try spend(rowCost(of: new), of: &cost) }
      fold(old, new, &folded)
      candidates[reference] = (old, new)
    }
    result.failed = failing.count
    guard !candidates.isEmpty else { return ([], []) }
    for row in folded.values { result.set(folds.values(of: row.section), of: row.section) }
    if !folds.isEmpty { try spend(result.sectionCount * query.aggregates.count / Self.aggregatesPerStep, of: &cost) }
    return QueryDifference(from: before, to: result, candidates: candidates).changes()
  }

  /// Folds another row in the place of one, and notes the sections concerned.
  private mutating func fold(_ old: QueryRow?, _ new: QueryRow?, _ folded: inout [ObjectIdentifier?: QueryRow]) {
    guard !folds.isEmpty else { return }
    for row in [old, new] {
      if let row { folded[row.section.map(ObjectIdentifier.init)] = row }
    }
    if let old, let new, old.folded == new.folded, QuerySection.isSame(old.section, new.section) { return }
    if let old { folds.remove(old) }
    if let new { folds.insert(new) }
  }

  /// What a row that changes costs: it is worked out, found its place, and told.
  private func rowCost(of row: QueryRow) -> Int {
    let textBytes = row.shown.reduce(0) { $0 + $1.leastTextBytes }
    return Self.rowCost + (computedCosts[row.entity.index] ?? 0) + textBytes / Self.textBytesPerStep
      + query.aggregates.count
  }

  private func spend(_ steps: Int, of cost: inout Int) throws(ModelError) {
    guard steps <= cost else {
      throw ModelError(.malformedFilter, "the query costs more for one commit than four times queries.commitSteps")
    }
    cost -= steps
  }

  /// What an object is as it is.
  private func finding(
    _ reference: Reference, in reader: some ObjectReader, cost: inout Int,
    section shared: (QuerySection) -> QuerySection
  ) throws(ModelError) -> Finding {
    guard let record = reader.record(reference), record.entity.isKind(of: query.entity.name) else { return .none }
    guard reach.isFar else { return try finding(reference, record, in: reader, &cost, shared) }
    return try finding(reference, record, in: paths.reader(over: reader), &cost, shared)
  }

  private func finding(
    _ reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader, _ cost: inout Int,
    _ shared: (QuerySection) -> QuerySection
  ) throws(ModelError) -> Finding {
    guard let viewer = query.viewer else {
      return try finding(reference, record, seenBy: reader, in: reader, &cost, shared)
    }
    try spend(Self.ruleCost, of: &cost)
    let seen = GuardedReader(reader, for: viewer)
    guard seen.record(reference) != nil else { return .none }
    return try finding(reference, record, seenBy: seen, in: reader, &cost, shared)
  }

  /// `reader` leaves out what may not be read of what `everything` has.
  private func finding(
    _ reference: Reference, _ record: ObjectRecord, seenBy reader: some ObjectReader, in everything: some ObjectReader,
    _ cost: inout Int, _ shared: (QuerySection) -> QuerySection
  ) throws(ModelError) -> Finding {
    switch try query.filter?.verdict(on: reference, in: reader, cost: &cost) {
    case .met, nil: break
    case .unmet: return .none
    case .failed: return .failure
    }
    let section = query.section.map { shared(QuerySection($0.value(of: reference, in: reader))) }
    let row = QueryRow(
      entity: record.entity, section: section, order: query.order, rank: query.order.rank(of: reference, in: reader),
      shown: query.shownKeys(of: record.entity).map { everything.value(of: record, reference, key: $0) }
        + query.paths.map { reader.value(of: reference, at: $0) },
      folded: query.aggregates.map { $0.value(of: reference, in: reader) })
    return .row(row)
  }

  /// Follows what an object is read through, as the paths lead now; nothing where the object's own keys decide that it
  /// is no row.
  private mutating func follow(_ reference: Reference, in reader: some ObjectReader) {
    guard let record = reader.record(reference), record.entity.isKind(of: query.entity.name),
      let own = reach.own[record.entity.index], own.isFar, query.mayBeMet(by: record)
    else { return paths.forget(reference) }
    paths.follow(reference, record.entity, own, in: reader)
  }

  /// How many rows there are, those outside of the window too, and objects for which the filter fails: what there is to
  /// keep.
  package var rowCount: Int { rows.count + failing.count }

  /// How many (key, row) pairs are followed. For tests.
  var linkCount: Int { paths.linkCount }
}

extension LiveQuery {
  /// The query in a state, which may cost so much.
  package init(_ query: Query, in state: ModelState, costLimit: Int) throws(ModelError) {
    var cost = costLimit
    try self.init(query, in: state, cost: &cost)
  }

  /// The query in a state. `cost` is what it may cost, and is spent from; throws `malformed-filter` where that does not
  /// suffice, or where `isAbandoned` says that the query is no longer wanted.
  package init(
    _ query: Query, in state: ModelState, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    try self.init(
      query, candidates: query.candidates(in: state) ?? state.unorderedReferences(of: query.entity), in: state,
      state.schema,
      cost: &cost,
      isAbandoned)
  }

  /// The query in a state of the past, likewise.
  package init(
    _ query: Query, in state: PastState, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    try self.init(
      query, candidates: state.references(of: query.entity), in: state, state.schema, cost: &cost, isAbandoned)
  }
}

/// What one commit did that may concern a query.
struct QueryTouch {
  /// Objects that may be rows: made, deleted, or set in a key that the query reads of them.
  var objects: Set<Reference> = []
  /// What was set of what the query reads, in the order of the operations; only for queries that read beyond their
  /// rows.
  var changes: [Commit.KeyChange] = []
}
