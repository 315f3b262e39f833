public import KeyValueModel

extension Observation {
  /// The objects that the observed value is read through, as `reader` has them: while none of them changes, there is
  /// nothing to tell.
  public func objects(in reader: some ObjectReader) -> Set<Reference> {
    guard let entity = reader.record(object)?.entity else { return [object] }
    var objects: Set<Reference> = [object]
    reader.collectObjects(readBy: reads, from: object, entity, into: &objects)
    if viewer != nil { reader.collectObjects(readBy: entity.rules.reads, from: object, entity, into: &objects) }
    return objects
  }
}

extension ObjectReader {
  fileprivate func collectObjects(
    readBy tree: KeyTree, from object: Reference, _ entity: Entity, into objects: inout Set<Reference>
  ) {
    guard let record = record(object) else { return }
    for branch in tree.branches {
      if case .computed(let computed) = entity.keys[branch.key].kind {
        for inner in [computed.reads] + computed.inheritedReads {
          collectObjects(readBy: inner, from: object, entity, into: &objects)
        }
      }
      guard !branch.behind.isEmpty else { continue }
      for case .reference(let next) in value(of: record, object, key: branch.key).readThrough {
        guard let entity = self.record(next)?.entity else { continue }
        objects.insert(next)
        collectObjects(readBy: branch.behind, from: next, entity, into: &objects)
        if branch.isGuarded { collectObjects(readBy: entity.rules.reads, from: next, entity, into: &objects) }
      }
    }
  }
}

extension Value {
  /// What a path goes on through: the members of a collection, or the object that a to-one names.
  fileprivate var readThrough: [Value] { elements ?? [self] }
}
