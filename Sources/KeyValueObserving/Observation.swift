public import KeyValueModel

/// One (object, key path, options, context) that an observer is notified of.
public struct Observation: Hashable, Sendable {
  /// What it consists of, in one object: an observation is copied with every change, and each copy counts one
  /// reference.
  ///
  /// `@unchecked Sendable`, because it has a subclass, `ObserverIndex.Registration`. In both, everything is constant.
  class Parts: @unchecked Sendable {
    let object: Reference
    let keyPath: ModelKeyPath
    let options: ObservingOptions
    let context: String?
    let viewer: Viewer?

    init(
      _ object: Reference, _ keyPath: ModelKeyPath, _ options: ObservingOptions, _ context: String?, _ viewer: Viewer?
    ) {
      (self.object, self.keyPath, self.options, self.context, self.viewer) = (object, keyPath, options, context, viewer)
    }
  }

  private let parts: Parts

  /// The observation that consists of these.
  init(_ parts: Parts) {
    self.parts = parts
  }

  /// An observation of a path that was resolved for the object's entity.
  public init(object: Reference, keyPath: ModelKeyPath, options: ObservingOptions, context: String? = nil) {
    self.init(object: object, keyPath: keyPath, options: options, context: context, viewer: nil)
  }

  /// The same by `viewer`, if not everything may be read that the value is read through.
  package init(
    object: Reference, keyPath: ModelKeyPath, options: ObservingOptions, context: String?, viewer: Viewer?
  ) {
    parts = Parts(object, keyPath, options, context, viewer)
  }

  /// The object that was named.
  public var object: Reference { parts.object }
  /// The path from it.
  public var keyPath: ModelKeyPath { parts.keyPath }
  /// What is told.
  public var options: ObservingOptions { parts.options }
  /// Given back with every change, unread.
  public var context: String? { parts.context }
  /// Who observes, where not everything may be read that the value is read through.
  package var viewer: Viewer? { parts.viewer }

  /// Equal when everything about them is.
  public static func == (left: Observation, right: Observation) -> Bool {
    left.parts === right.parts
      || left.object == right.object && left.keyPath == right.keyPath && left.options == right.options
        && left.context == right.context && left.viewer == right.viewer
  }

  /// Feeds what equality looks at.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(object)
    hasher.combine(keyPath)
    hasher.combine(options)
    hasher.combine(context)
    hasher.combine(viewer)
  }

  /// The observed value as `reader` has it.
  public func value(in reader: some ObjectReader) -> Value {
    guard let viewer else { return reader.value(of: object, at: keyPath) }
    return GuardedReader(reader, for: viewer).value(of: object, at: keyPath)
  }

  /// What a collection of the object itself folds into, where that is what is observed; nil for any other path.
  var ownFold: CollectionFold? {
    guard viewer == nil, keyPath.keys.count == 1, let operation = keyPath.operation else { return nil }
    return CollectionFold(operation, ofKey: keyPath.keys[0])
  }

  /// What the value is read from.
  var reads: KeyTree { viewer == nil ? keyPath.reads : keyPath.reads.guarded }

  /// What the observer is told first: the whole value, as a setting.
  public func initialChange(cell: String?, in reader: some ObjectReader) -> Change {
    Change(of: self, cell: cell, old: nil, new: knownValue(in: reader))
  }
}

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

extension Observation {
  /// More observations than these are not looked at one by one.
  private static let countLookedAt = 64

  /// Those of consecutive commits that can concern these observations, where they all read their own objects and
  /// nothing else: the ones that write an object of theirs or bracket a key of it. All others leave them and what they
  /// read as they are, so that the state before these commits is, for them, the state before all. `present` is the
  /// state after the last. Nil where that is not known without more work: a path leads to other objects, a rule
  /// decides, or they are many.
  package static func commits(
    _ commits: some Collection<Commit>, concerning observations: some Collection<Observation>, in present: ModelState
  ) -> [Commit]? {
    guard observations.count <= countLookedAt else { return nil }
    var entities: [Reference: Entity] = [:]
    for observation in observations {
      guard let entity = present.record(observation.object)?.entity, observation.readsItsObjectAlone(of: entity)
      else { return nil }
      entities[observation.object] = entity
    }
    var concerning: [Commit] = []
    for commit in commits {
      var isConcerning = false
      for (object, record) in commit.before {
        guard let entity = entities[object] else { continue }
        // One that was not there, or was something else, may have read other objects.
        guard let record, record.entity === entity else { return nil }
        isConcerning = true
      }
      if !isConcerning { isConcerning = commit.touchesObject { entities[$0] != nil } }
      if isConcerning { concerning.append(commit) }
    }
    return concerning
  }

  /// Whether the value is read from the object alone, whatever its keys hold, while it is of this entity.
  private func readsItsObjectAlone(of entity: Entity) -> Bool { viewer == nil && entity.readsItselfAlone(reads) }
}

extension ObjectReader {
  fileprivate func collectObjects(
    readBy tree: KeyTree, from object: Reference, _ entity: Entity, into objects: inout Set<Reference>
  ) {
    guard let record = record(object) else { return }
    for branch in tree.branches {
      if case .computed(let computed) = entity.keys[branch.key].kind {
        for inner in computed.notifyingReads { collectObjects(readBy: inner, from: object, entity, into: &objects) }
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

extension Entity {
  fileprivate func readsItselfAlone(_ tree: KeyTree) -> Bool {
    tree.branches.allSatisfy { branch in
      guard branch.behind.isEmpty else { return false }
      guard case .computed(let computed) = keys[branch.key].kind else { return true }
      return computed.notifyingReads.allSatisfy(readsItselfAlone)
    }
  }
}

/// What an observer wants to be told (KVO guide, "Options"). Shapes the payload, never whether there is a change.
public struct ObservingOptions: OptionSet, Hashable, Sendable {
  /// One bit per option.
  public let rawValue: UInt8

  /// The options of these bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The value after the change.
  public static let new = ObservingOptions(rawValue: 1)
  /// The value before the change.
  public static let old = ObservingOptions(rawValue: 2)
  /// A first notification with the state at registration.
  public static let initial = ObservingOptions(rawValue: 4)
  /// A notification of its own before each change.
  public static let prior = ObservingOptions(rawValue: 8)

  private static let names: [String: ObservingOptions] = [
    "new": .new, "old": .old, "initial": .initial, "prior": .prior,
  ]

  /// The option of this name (`new`, `old`, `initial`, `prior`), or nil.
  public init?(name: String) {
    guard let option = Self.names[name] else { return nil }
    self = option
  }

  /// The names of the options that are set.
  public var optionNames: [String] {
    ["new", "old", "initial", "prior"].filter { Self.names[$0].map(contains) ?? false }
  }
}
