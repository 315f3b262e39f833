extension ModelState {
  /// The objects of an entity that an index leaves of those with these values, nil where none helps; of several the one
  /// that leaves least.
  package func candidates(of entity: Entity, having equalities: [(key: Int, value: Value)]) -> [Reference]? {
    equalities
      .compactMap { references(of: entity, whereKey: $0.key, is: $0.value) }
      .min { $0.count < $1.count }
  }
}
