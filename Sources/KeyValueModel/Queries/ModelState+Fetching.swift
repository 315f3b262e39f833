extension ModelState {
  /// The objects that an index leaves of an entity, nil where none helps; of several the one that leaves least.
  package func candidates(of entity: Entity, for filter: Filter) -> [Reference]? {
    filter.equalities
      .compactMap { references(of: entity, whereKey: $0.key, is: $0.value) }
      .min { $0.count < $1.count }
  }
}
