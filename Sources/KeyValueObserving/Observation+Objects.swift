public import KeyValueModel

extension Observation {
  /// The objects that the observed value is read through, as `reader` has them: while none of them changes, there is
  /// nothing to tell.
  public func objects(in reader: some ObjectReader) -> Set<Reference> {
    guard let entity = reader.record(object)?.entity else { return [object] }
    return Set(reader.dependencies(of: object, entity, at: keyPath.keys).map(\.observedKey.object)).union([object])
  }
}
