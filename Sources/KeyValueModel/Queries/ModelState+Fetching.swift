extension ModelState {
  /// The objects of an entity that meet a filter, in a sort order; by reference where there is none.
  ///
  /// `extent` is what `references(of:)` gives, asked for only where no index helps. Where the filter compares an
  /// indexed key with a constant, only the objects with that value are looked at. `costLimit` is the most that
  /// filtering may cost in all, see `EvaluationBudget`; over it throws `malformed-filter`.
  package func fetch(
    _ entity: Entity, where filter: Filter?, by order: SortOrder?, costLimit: Int, extent: () -> [Reference]
  ) throws(ModelError) -> [Reference] {
    var found: [Reference] = []
    if let filter {
      var cost = costLimit
      for reference in candidates(of: entity, for: filter) ?? extent() {
        if try filter.isMet(by: reference, in: self, cost: &cost) { found.append(reference) }
      }
    } else {
      found = extent()
    }
    guard let order, !order.keys.isEmpty else { return found }
    return found.map { order.rank(of: $0, in: self) }.sorted(by: order.precedes).map(\.reference)
  }

  /// The objects that an index leaves of an entity, nil where none helps; of several the one that leaves least.
  package func candidates(of entity: Entity, for filter: Filter) -> [Reference]? {
    filter.equalities
      .compactMap { references(of: entity, whereKey: $0.key, is: $0.value) }
      .min { $0.count < $1.count }
  }
}
