package import KeyValueModel

/// A query with its result, kept up to date commit by commit. It depends on nothing but the states that it is given: a
/// new evaluation at the same revision has the same result.
///
/// A commit costs an amount for each object that it touches, and a logarithm of the number of rows for each row that
/// changes.
package struct LiveQuery: Sendable {
  /// The query.
  package let query: Query
  /// The current rows.
  package private(set) var result: QueryResult
  let reach: QueryReach
  private var rows: [Reference: QueryRow] = [:]
  /// The objects for which the filter fails.
  private var failing: Set<Reference> = []
  /// The aggregates of the rows.
  private var folds: QueryFolds
  private var paths = QueryPaths()
  /// The cost of the computed keys that a row shows, by the index of its entity.
  private let computedCosts: [Int: Int]

  /// The cost for a commit of an object whose own keys decide, of an object that others are read through, of a row that
  /// changes, and of each computed key of a row, however that is computed.
  private static let (objectCost, farObjectCost, rowCost, computedCost) = (1, 10, 10, 20)
  /// The cost of deciding whether an object may be read.
  private static let ruleCost = 10
  /// The number of bytes of text in a row that cost one more step.
  private static let textBytesPerStep = 64
  /// The number of aggregates of sections that cost one step. All of them are reported.
  private static let aggregatesPerStep = 8

  /// Creates the live query at one revision. `candidates` are all objects that may meet the filter now and, if the
  /// query reads beyond them, all objects that may come to meet it without being set themselves.
  ///
  /// `cost` is the maximum cost that is left, in steps of the filter: an object that is examined costs one more, and a
  /// row ten. Throws `malformed-filter` if that does not suffice, or if `isAbandoned`, which is called once for many
  /// objects, returns true because the query is no longer wanted.
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

  /// The result of evaluating an object.
  private enum Finding {
    case row(QueryRow)
    /// The object is not a row.
    case none
    /// The filter fails for the object.
    case failure

    var row: QueryRow? {
      if case .row(let row) = self { row } else { nil }
    }
  }

  private mutating func note(_ finding: Finding, of reference: Reference) {
    rows[reference] = finding.row
    if case .failure = finding { failing.insert(reference) } else { failing.remove(reference) }
  }

  /// The number of objects after which `isAbandoned` is called again.
  private static let objectsPerCheck = 256

  private static func check(_ number: Int, _ isAbandoned: () -> Bool) throws(ModelError) {
    guard number % objectsPerCheck == objectsPerCheck - 1, isAbandoned() else { return }
    throw ModelError(.malformedFilter, "the query was abandoned before it was evaluated")
  }

  /// Returns one section for all rows in it at the beginning.
  private static func shared(_ section: QuerySection, in sections: inout [Value: QuerySection]) -> QuerySection {
    if let known = sections[section.name] { return known }
    sections[section.name] = section
    return section
  }

  /// Applies a commit, given the state after it. Returns the changes of the window, without reasons.
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
    // The sections that rows entered, left or moved in, each with one of its rows.
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

  /// Replaces one row by another in the folds, and records the sections concerned.
  private mutating func fold(_ old: QueryRow?, _ new: QueryRow?, _ folded: inout [ObjectIdentifier?: QueryRow]) {
    guard !folds.isEmpty else { return }
    for row in [old, new] {
      if let row { folded[row.section.map(ObjectIdentifier.init)] = row }
    }
    if let old, let new, old.folded == new.folded, QuerySection.isSame(old.section, new.section) { return }
    if let old { folds.remove(old) }
    if let new { folds.insert(new) }
  }

  /// Returns the cost of a row that changes, which is evaluated, placed and reported.
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

  /// Evaluates an object in its current state.
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

  /// Evaluates an object. `reader` omits the parts of `everything` that may not be read.
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

  /// Follows what an object is read through, along the current paths. Follows nothing if the object's own keys decide
  /// that it is not a row.
  private mutating func follow(_ reference: Reference, in reader: some ObjectReader) {
    guard let record = reader.record(reference), record.entity.isKind(of: query.entity.name),
      let own = reach.own[record.entity.index], own.isFar, query.mayBeMet(by: record)
    else { return paths.forget(reference) }
    paths.follow(reference, record.entity, own, in: reader)
  }

  /// The number of entries to keep: all rows, including those outside of the window, and objects for which the filter
  /// fails.
  package var rowCount: Int { rows.count + failing.count }

  /// The number of (key, row) pairs that are followed. For tests.
  var linkCount: Int { paths.linkCount }
}

extension LiveQuery {
  /// Creates the live query in a state, with a maximum cost.
  package init(_ query: Query, in state: ModelState, costLimit: Int) throws(ModelError) {
    var cost = costLimit
    try self.init(query, in: state, cost: &cost)
  }

  /// Creates the live query in a state. `cost` is the maximum cost, and is reduced by the actual cost. Throws
  /// `malformed-filter` if that does not suffice, or if `isAbandoned` returns true because the query is no longer
  /// wanted.
  package init(
    _ query: Query, in state: ModelState, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    try self.init(
      query, candidates: query.candidates(in: state) ?? state.unorderedReferences(of: query.entity), in: state,
      state.schema,
      cost: &cost,
      isAbandoned)
  }

  /// Creates the live query in a past state, likewise.
  package init(
    _ query: Query, in state: PastState, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    try self.init(
      query, candidates: state.references(of: query.entity), in: state, state.schema, cost: &cost, isAbandoned)
  }
}

/// The parts of one commit that may concern a query.
struct QueryTouch {
  /// Objects that may be rows and were created, deleted, or set in a key that the query reads of them.
  var objects: Set<Reference> = []
  /// The changes of keys that the query reads, in the order of the operations; only for queries that read beyond their
  /// rows.
  var changes: [Commit.KeyChange] = []
}
