import KeyValueModel

/// A key of an object; or, with a negative key, the fold or the members of one of its collections: see
/// `CollectionShapes`.
struct ObservedKey: Hashable {
  let object: Reference
  let key: Int

  /// True if it stands for the members of a collection.
  var isCollection: Bool { key < 0 }
}

/// A key whose change can change what an observation sees: a link of its path, or what a computed key reads.
struct Dependency: Hashable {
  let observedKey: ObservedKey
  /// The computed keys between the observation and this key, outermost first; empty for a key that the path names
  /// itself. Each may suppress a notification by its own `notifies` or an open bracket.
  let gates: [ObservedKey]
  /// True if the key is only read to decide whether an object may be read.
  var isOfRule = false
}

/// A walk over everything that is read from an object, through the current state of the objects.
struct DependencyWalk<Reader: ObjectReader> {
  let reader: Reader
  private(set) var shapes: CollectionShapes
  /// The dependencies that were found, in the order of the walk.
  private(set) var found: [Dependency] = []

  /// Finds everything that `tree` reads from an object. An object that does not exist has the keys of `entity` too,
  /// because it may be created.
  mutating func follow(
    _ tree: KeyTree, from object: Reference, _ entity: Entity, gates: [ObservedKey] = [], ofRule isOfRule: Bool = false
  ) {
    for branch in tree.branches {
      let key = ObservedKey(object: object, key: branch.key)
      found.append(Dependency(observedKey: key, gates: gates, isOfRule: isOfRule))
      switch entity.keys[branch.key].kind {
      case .attribute: break
      case .toOne: followValue(of: key, branch, gates, isOfRule)
      case .toMany:
        guard !branch.behind.isEmpty || branch.fold != nil else { break }
        let members = ObservedKey(object: object, key: shapes.key(for: branch))
        found.append(Dependency(observedKey: members, gates: gates, isOfRule: isOfRule))
      case .computed(let computed):
        for inner in computed.notifyingReads {
          follow(inner, from: object, entity, gates: gates + [key], ofRule: isOfRule)
        }
        followValue(of: key, branch, gates, isOfRule)
      }
    }
  }

  /// Continues behind a key that leads to an object.
  private mutating func followValue(
    of key: ObservedKey, _ branch: KeyTree.Branch, _ gates: [ObservedKey], _ isOfRule: Bool
  ) {
    guard !branch.behind.isEmpty, let record = reader.record(key.object),
      case .reference(let next) = reader.value(of: record, key.object, key: key.key),
      let entity = reader.record(next)?.entity
    else { return }
    follow(branch.behind, from: next, entity, gates: gates, ofRule: isOfRule)
    if branch.isGuarded { follow(entity.rules.reads, from: next, entity, ofRule: true) }
  }
}

/// Numbers for the shapes of watches: a collection key, what is read of its members, and their fold. Together with the
/// owner, such a number names a `CollectionWatch` as if it were one more key of the owner, which is how dependencies
/// name it.
struct CollectionShapes {
  private var keys: [KeyTree.Branch: Int] = [:]
  private var branches: [Int: KeyTree.Branch] = [:]
  private var watches: [Int: Int] = [:]
  private var nextKey = -1

  /// Returns the number for the shape of a branch, always negative.
  mutating func key(for branch: KeyTree.Branch) -> Int {
    if let key = keys[branch] { return key }
    let key = nextKey
    nextKey -= 1
    keys[branch] = key
    branches[key] = branch
    return key
  }

  /// The branch that a number stands for.
  subscript(key: Int) -> KeyTree.Branch? { branches[key] }

  /// Counts a watch of this shape.
  mutating func retain(_ key: Int) { watches[key, default: 0] += 1 }

  /// Counts one watch less. With the last one, the number is removed.
  mutating func release(_ key: Int) {
    guard let count = watches[key] else { return }
    guard count == 1 else {
      watches[key] = count - 1
      return
    }
    watches[key] = nil
    if let branch = branches.removeValue(forKey: key) { keys[branch] = nil }
  }
}
