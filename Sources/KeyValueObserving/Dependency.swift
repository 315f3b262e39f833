import KeyValueModel

/// A key of an object; or, with a negative key, what a collection of the object folds into or its members have: see
/// `CollectionShapes`.
struct ObservedKey: Hashable {
  let object: Reference
  let key: Int

  /// Whether it stands for the members of a collection.
  var isCollection: Bool { key < 0 }
}

/// A key whose change can change what an observation sees: a link of its path, or what a computed key reads.
struct Dependency: Hashable {
  let observedKey: ObservedKey
  /// The computed keys between the observation and this key, outermost first; none for what the path names itself. Each
  /// may keep silent by its own `notifies` or an open bracket.
  let gates: [ObservedKey]
}

/// Follows what is read from an object through the objects as they are now.
struct DependencyWalk<Reader: ObjectReader> {
  private let reader: Reader
  private(set) var shapes: CollectionShapes
  /// What was found, in the order of the walk.
  private(set) var found: [Dependency] = []

  init(reader: Reader, shapes: consuming CollectionShapes) {
    self.reader = reader
    self.shapes = shapes
  }

  /// Finds everything that `tree` reads from an object. One that is not there has the keys of `entity` all the same: it
  /// may be created.
  mutating func follow(
    _ tree: KeyTree, from object: Reference, _ entity: Entity, gates: [ObservedKey] = []
  ) {
    for branch in tree.branches {
      let key = ObservedKey(object: object, key: branch.key)
      found.append(Dependency(observedKey: key, gates: gates))
      switch entity.keys[branch.key].kind {
      case .attribute: break
      case .toOne: followValue(of: key, branch.behind, gates)
      case .toMany:
        guard !branch.behind.isEmpty || branch.fold != nil else { break }
        let members = ObservedKey(object: object, key: shapes.key(for: branch))
        found.append(Dependency(observedKey: members, gates: gates))
      case .computed(let computed):
        for inner in [computed.reads] + computed.inheritedReads {
          follow(inner, from: object, entity, gates: gates + [key])
        }
        followValue(of: key, branch.behind, gates)
      }
    }
  }

  /// Goes on behind a key that leads to an object.
  private mutating func followValue(of key: ObservedKey, _ tree: KeyTree, _ gates: [ObservedKey]) {
    guard !tree.isEmpty, let record = reader.record(key.object),
      case .reference(let next) = reader.value(of: record, key.object, key: key.key),
      let entity = reader.record(next)?.entity
    else { return }
    follow(tree, from: next, entity, gates: gates)
  }
}
