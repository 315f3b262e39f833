internal import KeyValueModel

/// A key of an object.
struct ObservedKey: Hashable {
  let object: Reference
  let key: Int
}

/// A key whose change can change what an observation sees: a link of its path, or what a computed key reads.
struct Dependency {
  let observedKey: ObservedKey
  /// How many computed keys stand between the observation and this key: 0 for what the path names itself.
  let depth: Int
  /// Those computed keys, outermost first: each may keep silent by its own `notifies` or an open bracket.
  let gates: [ObservedKey]
}

extension ObjectReader {
  /// Everything that the value of `path` at `reference` depends on, in the order of the walk. An object that is not
  /// there has the keys of `entity` all the same: somebody may make it.
  func dependencies(of reference: Reference, _ entity: Entity, at path: some Collection<Int>) -> [Dependency] {
    var found: [Dependency] = []
    collectDependencies(of: reference, entity, at: path, depth: 0, gates: [], into: &found)
    return found
  }

  private func collectDependencies(
    of reference: Reference, _ entity: Entity, at path: some Collection<Int>, depth: Int, gates: [ObservedKey],
    into found: inout [Dependency]
  ) {
    var current = reference
    var entity = entity
    var remaining = path.count
    for key in path {
      let observedKey = ObservedKey(object: current, key: key)
      found.append(Dependency(observedKey: observedKey, depth: depth, gates: gates))
      if case .computed(let computed) = entity.keys[key].kind {
        for inner in [computed.path] + computed.inheritedPaths {
          collectDependencies(
            of: current, entity, at: inner, depth: depth + 1, gates: gates + [observedKey], into: &found)
        }
      }
      remaining -= 1
      guard remaining > 0, let record = record(current),
        case .reference(let next) = value(of: record, current, key: key), let nextRecord = self.record(next)
      else { return }
      current = next
      entity = nextRecord.entity
    }
  }
}
