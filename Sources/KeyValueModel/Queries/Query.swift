import CEL

/// A live query (the specification, section 5): the objects of an entity that meet a filter, their order and sections,
/// the maximum number of rows, and the columns of each row. Two queries that are written alike are equal.
package struct Query: Hashable, Sendable {
  /// A query as it was written.
  package struct Words: Hashable, Sendable {
    /// The entity's name.
    package var entity: String
    /// The condition in CEL; nil for all objects.
    package var filter: String?
    /// Key paths, joined by commas, with a `-` before each descending one; nil for the order of references.
    package var sort: String?
    /// The key path by whose value the rows are grouped into sections.
    package var section: String?
    /// The maximum number of rows; nil for all.
    package var limit: Int?
    /// The keys and key paths to show; nil for all keys.
    package var keys: [String]?
    /// The aggregate operators over all rows, joined by commas; nil for none.
    package var aggregate: String?

    /// The query for all objects of an entity, with all their keys.
    package init(entity: String) {
      self.entity = entity
    }

    /// Returns true if both are written alike, scalar by scalar, as CEL compares texts: two filters that are equal by
    /// Unicode rules may be met by different objects.
    package static func == (left: Words, right: Words) -> Bool {
      left.limit == right.limit && isExact(left.entity, right.entity) && isExact(left.filter, right.filter)
        && isExact(left.sort, right.sort) && isExact(left.section, right.section)
        && isExact(left.aggregate, right.aggregate) && left.keys?.count == right.keys?.count
        && zip(left.keys ?? [], right.keys ?? []).allSatisfy(isExact)
    }

    private static func isExact(_ left: String?, _ right: String?) -> Bool {
      left.map { ExactText($0) } == right.map { ExactText($0) }
    }

    /// Feeds most of the properties that equality compares to the hasher.
    package func hash(into hasher: inout Hasher) {
      hasher.combine(ExactText(entity))
      for text in [filter, sort, section] { hasher.combine(text.map { ExactText($0) }) }
      hasher.combine(limit)
    }
  }

  /// The query as it was written.
  package let words: Words
  /// The entity of the objects.
  package let entity: Entity
  /// The condition; nil for all objects.
  package let filter: Filter?
  /// The order within a section, or of all rows if there are no sections.
  package let order: SortOrder
  /// The key whose values group the rows into sections, in ascending order; nil for no sections.
  package let section: SortOrder.Key?
  /// The indexes of the keys to show, ascending; nil for all keys of an object.
  package let keys: [Int]?
  /// The key paths to show after the keys, as they were written.
  package let paths: [ModelKeyPath]
  /// The aggregate operators over all rows.
  package let aggregates: [QueryAggregate]
  /// Stored keys that must have exactly these values for an object to meet the filter. Dates are left out, since one
  /// moment can be written in many ways.
  package let equalities: [(key: Int, value: Value)]
  /// The viewer whose read rules apply, or nil if nothing can be hidden from it.
  package let viewer: Viewer?
  /// Stored keys that must have these values for an object to be readable.
  private let readableEqualities: [(key: Int, value: Value)]

  /// Resolves a query, for a viewer if not everything may be read.
  ///
  /// Throws `unknown-entity`, an error for a key path that is invalid, `invalid-value` for values that have no order,
  /// `forbidden` for a key that may not be read, and `malformed-filter` with line and column.
  package init(_ words: Words, in schema: Schema, for viewer: Viewer? = nil) throws(ModelError) {
    self.words = words
    let entity = try schema.requireEntity(words.entity)
    self.entity = entity
    order = try words.sort.map { text throws(ModelError) in try SortOrder(text, of: entity, in: schema) } ?? SortOrder()
    section = try words.section.map { text throws(ModelError) in try SortOrder.Key(text, of: entity, in: schema) }
    if let text = words.filter {
      do throws(KeyExpression.Mistake) {
        filter = try Filter(text, of: entity, in: schema)
      } catch {
        throw ModelError(.malformedFilter, "line \(error.line), column \(error.column): \(error.message)")
      }
    } else {
      filter = nil
    }
    (keys, paths) = try Self.columns(words.keys, of: entity, in: schema)
    aggregates =
      try words.aggregate.map { text throws(ModelError) in
        try QueryAggregate.read(text, of: entity, in: schema)
      } ?? []
    let named = (order.keys + (section.map { [$0] } ?? [])).map(\.path) + paths + aggregates.compactMap(\.path)
    if let viewer {
      if let filter { try viewer.check(filter.reads, of: entity, in: schema) }
      for path in named { try viewer.check(path, from: entity, in: schema) }
      for key in keys ?? [] { try viewer.check(KeyTree(path: [key]), of: entity, in: schema) }
    }
    // Without anything to hide, the query is the same for all viewers.
    let viewer = viewer.flatMap { [filter] viewer in
      let seesAll =
        viewer.mayReadAll(of: entity, in: schema)
        && schema.family(of: entity).allSatisfy { viewer.hiddenKeys(of: $0).isEmpty }
        && named.allSatisfy { viewer.seesAll(behind: $0.named, of: entity, schema) }
        && filter.map { viewer.seesEverything || $0.staysWithKeys(of: entity, in: schema) } ?? true
      return seesAll ? nil : viewer
    }
    self.viewer = viewer
    readableEqualities = viewer?.equalities(of: entity, in: schema) ?? []
    equalities = ((filter?.equalities ?? []) + readableEqualities)
      .filter { entity.keys[$0.key].attribute?.type != .date }
  }

  /// Returns the columns to show: the indexes of keys, nil for all, and key paths, each once.
  private static func columns(
    _ names: [String]?, of entity: Entity, in schema: Schema
  ) throws(ModelError) -> (keys: [Int]?, paths: [ModelKeyPath]) {
    guard let names else { return (nil, []) }
    var keys: Set<Int> = []
    var paths: [ModelKeyPath] = []
    for name in names {
      if let index = entity.indexOfKey(name) {
        keys.insert(index)
      } else if !paths.contains(where: { $0.text == name }) {
        paths.append(try schema.resolveObservable(name, from: entity))
        guard paths.count <= maximumPaths else {
          throw ModelError(.malformedQuery, "keys has more than \(maximumPaths) paths of several keys")
        }
      }
    }
    return (keys.sorted(), paths)
  }

  /// The maximum number of key paths in a row that have several keys or an operator.
  package static let maximumPaths = 64

  /// Returns the objects that an index narrows the query to, or nil if no index applies.
  package func candidates(in state: ModelState) -> [Reference]? {
    state.candidates(of: entity, having: (filter?.equalities ?? []) + readableEqualities)
  }

  /// Returns true if both are written alike and have the same viewer.
  package static func == (left: Query, right: Query) -> Bool {
    left.words == right.words && left.viewer == right.viewer
  }

  /// Feeds the properties that equality compares to the hasher.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(words)
    hasher.combine(viewer)
  }

  /// Evaluates the filter for an object, which is `unmet` if the object does not exist for the viewer. `reader` must
  /// hide what the viewer may not read.
  fileprivate func verdict(on reference: Reference, in reader: some ObjectReader) throws(ModelError) -> Filter.Verdict {
    guard let filter else { return reader.record(reference) != nil ? .met : .unmet }
    return try filter.verdict(on: reference, in: reader)
  }

  /// False if an object's own stored keys rule out both that it meets the filter and that the filter fails for it.
  package func mayBeMet(by record: ObjectRecord) -> Bool {
    func value(_ key: Int) -> Value? { record.entity.keys[key].storage.map { record.values[$0] } }
    return equalities.allSatisfy { value($0.key) == $0.value }
      && filter?.bounds.allSatisfy { bound in value(bound.key).map(bound.allows) ?? true } ?? true
  }

  /// Returns the indexes of the keys to show of an object of `entity`.
  package func shownKeys(of entity: Entity) -> [Int] {
    if let keys { return keys }
    guard let hidden = viewer?.hiddenKeys(of: entity), !hidden.isEmpty else { return Array(entity.keys.indices) }
    return entity.keys.indices.filter { !hidden.contains($0) }
  }

  /// Returns the columns of an object of `entity`: its keys, then the key paths.
  package func columns(of entity: Entity) -> [QueryColumn] {
    shownKeys(of: entity).map(QueryColumn.key) + paths.map(QueryColumn.path)
  }

  /// Returns the keys that the query reads of an object of `entity`, which is the query's entity or extends it. Keys
  /// that only decide whether the object may be read are not included.
  package func reads(of entity: Entity) -> KeyTree {
    var tree = filter?.reads ?? KeyTree()
    for key in order.keys { tree.merge(key.path.reads) }
    if let section { tree.merge(section.path.reads) }
    for key in shownKeys(of: entity) { tree.merge(KeyTree(path: [key])) }
    for path in paths + aggregates.compactMap(\.path) { tree.merge(path.reads) }
    return viewer == nil ? tree : tree.guarded
  }
}

extension MeteredState {
  /// The number of bytes of compared values that count as one step, as with the strings of expressions.
  private static let bytesPerStep = 8

  /// Returns the objects that match a query, in its sort order if `isSorted` is true and it has one, otherwise by
  /// reference. `failed` is the number of other objects for which the filter fails.
  ///
  /// `extent` returns what `references(of:)` does, and is called only if no index applies. If the filter compares an
  /// indexed key with a constant, only the objects with that value are read. Throws `too-many-steps` if the fetch takes
  /// more steps than the work of the request has left, and `malformed-filter` if the filter costs too much for one
  /// object alone.
  package func fetch(
    _ query: Query, isSorted: Bool, extent: () -> [Reference]
  ) throws(ModelError) -> (references: [Reference], failed: Int) {
    guard let viewer = query.viewer else { return try fetch(query, isSorted: isSorted, in: self, extent) }
    return try fetch(query, isSorted: isSorted, in: GuardedReader(self, for: viewer), extent)
  }

  /// Fetches by a reader of the state that hides what may not be read.
  private func fetch(
    _ query: Query, isSorted: Bool, in reader: some ObjectReader, _ extent: () -> [Reference]
  ) throws(ModelError) -> (references: [Reference], failed: Int) {
    var found: [Reference] = []
    var failed = 0
    if query.filter != nil || query.viewer != nil {
      for reference in query.candidates(in: state) ?? extent() {
        switch try query.verdict(on: reference, in: reader) {
        case .met: found.append(reference)
        case .failed: failed += 1
        case .unmet: break
        }
        try work?.check()
      }
    } else {
      found = extent()
    }
    let order = query.order
    guard isSorted, !order.keys.isEmpty else { return (found, failed) }
    var ranks: [SortOrder.Rank] = []
    ranks.reserveCapacity(found.count)
    for reference in found {
      ranks.append(order.rank(of: reference, in: reader))
      try work?.check()
    }
    let steps = Self.steps(toCompare: ranks.lazy.flatMap(\.values).map(\.value), among: ranks.count)
    // A stopped sort must still terminate: it then compares nothing.
    let sorted = ranks.sorted { work?.spend(steps) ?? true && order.precedes($0, $1) }
    try work?.check()
    return (sorted.map(\.reference), failed)
  }

  /// Charges the steps of sorting rows, before the sort. Throws `too-many-steps`.
  package func spend(onSorting rows: [QueryRow]) throws(ModelError) {
    let values = rows.lazy.flatMap { row in row.rank.values.map(\.value) + (row.section.map { [$0.name] } ?? []) }
    let comparisons = rows.count * (Int.bitWidth - rows.count.leadingZeroBitCount)
    work?.spend(comparisons * Self.steps(toCompare: values, among: rows.count))
    try work?.check()
  }

  /// Returns the steps that it takes to compare two of `count` things that have these values in total.
  private static func steps(toCompare values: some Sequence<Value>, among count: Int) -> Int {
    1 + values.reduce(0) { $0 + $1.comparedBytes } / (bytesPerStep * max(count, 1))
  }
}

extension ModelState {
  /// Returns the objects of an entity that an index finds for one of these values, or nil if no index applies. If
  /// several indexes apply, the one with the fewest objects is used.
  package func candidates(of entity: Entity, having equalities: [(key: Int, value: Value)]) -> [Reference]? {
    equalities
      .compactMap { references(of: entity, whereKey: $0.key, is: $0.value) }
      .min { $0.count < $1.count }
  }
}

/// A column of a row: a key of its object, or a key path from it.
package enum QueryColumn: Hashable, Sendable {
  /// The key with this index.
  case key(Int)
  /// A key path of several keys, or with an operator.
  case path(ModelKeyPath)

  /// Returns the name of the column in responses, for a row of an entity.
  package func name(in entity: Entity) -> String {
    switch self {
    case .key(let index): entity.keys[index].name
    case .path(let path): path.text
    }
  }
}

extension Value {
  /// The number of bytes to compare, or 0 for a value of a few words.
  fileprivate var comparedBytes: Int {
    switch self {
    case .null, .bool, .integer, .number, .rounded, .reference: 0
    case .string(let text): text.utf8.count
    case .array, .object, .members: approximateBytes
    }
  }
}
