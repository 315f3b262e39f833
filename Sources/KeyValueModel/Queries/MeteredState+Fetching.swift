extension MeteredState {
  /// How many bytes of values that are compared count as one step, as with the strings of expressions.
  private static let bytesPerStep = 8

  /// The objects that a query is about, in its sort order where `isSorted`; by reference otherwise, and where it has
  /// none. `failed` is for how many others the filter fails.
  ///
  /// `extent` is what `references(of:)` gives, asked for only where no index helps. Where the filter compares an
  /// indexed key with a constant, only the objects with that value are looked at. Throws `too-many-steps` where it
  /// takes more than the work of the request has left, and `malformed-filter` where the filter is too much for one
  /// object alone.
  package func fetch(
    _ query: Query, isSorted: Bool, extent: () -> [Reference]
  ) throws(ModelError) -> (references: [Reference], failed: Int) {
    guard let viewer = query.viewer else { return try fetch(query, isSorted: isSorted, in: self, extent) }
    return try fetch(query, isSorted: isSorted, in: GuardedReader(self, for: viewer), extent)
  }

  /// The same by a reader of the state that leaves out what may not be read.
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
    // A stopped sort must still come to its end: it then compares nothing.
    let sorted = ranks.sorted { work?.spend(steps) ?? true && order.precedes($0, $1) }
    try work?.check()
    return (sorted.map(\.reference), failed)
  }

  /// Takes the steps of putting rows in order before that is done. Throws `too-many-steps`.
  package func spend(onSorting rows: [QueryRow]) throws(ModelError) {
    let values = rows.lazy.flatMap { row in row.rank.values.map(\.value) + (row.section.map { [$0.name] } ?? []) }
    let comparisons = rows.count * (Int.bitWidth - rows.count.leadingZeroBitCount)
    work?.spend(comparisons * Self.steps(toCompare: values, among: rows.count))
    try work?.check()
  }

  /// How many steps it takes to compare two of so many things that have these values together.
  private static func steps(toCompare values: some Sequence<Value>, among count: Int) -> Int {
    1 + values.reduce(0) { $0 + $1.comparedBytes } / (bytesPerStep * max(count, 1))
  }
}

extension Value {
  /// How many bytes there are to compare of it, where it is more than a few words.
  fileprivate var comparedBytes: Int {
    switch self {
    case .null, .bool, .integer, .number, .rounded, .reference: 0
    case .string(let text): text.utf8.count
    case .array, .object, .members: approximateBytes
    }
  }
}
