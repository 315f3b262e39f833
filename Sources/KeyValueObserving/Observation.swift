public import KeyValueModel

/// One (object, key path, options, context) that an observer is notified of.
public struct Observation: Hashable, Sendable {
  /// The parts of an observation, in one object: an observation is copied with every change, and each copy retains a
  /// single reference.
  ///
  /// `@unchecked Sendable`, because it has a subclass, `ObserverIndex.Registration`. Both classes have only constant
  /// properties.
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

  /// Creates an observation of these parts.
  init(_ parts: Parts) {
    self.parts = parts
  }

  /// Creates an observation of a path that was resolved for the object's entity.
  public init(object: Reference, keyPath: ModelKeyPath, options: ObservingOptions, context: String? = nil) {
    self.init(object: object, keyPath: keyPath, options: options, context: context, viewer: nil)
  }

  /// Creates an observation by a viewer whose read rules apply; `viewer` is nil if everything that the value is read
  /// through may be read.
  package init(
    object: Reference, keyPath: ModelKeyPath, options: ObservingOptions, context: String?, viewer: Viewer?
  ) {
    parts = Parts(object, keyPath, options, context, viewer)
  }

  /// The object that the path starts from.
  public var object: Reference { parts.object }
  /// The key path from the object.
  public var keyPath: ModelKeyPath { parts.keyPath }
  /// The options, which determine the payload of notifications.
  public var options: ObservingOptions { parts.options }
  /// The observer's own context, returned with every change and never interpreted.
  public var context: String? { parts.context }
  /// The viewer whose read rules apply; nil if everything that the value is read through may be read.
  package var viewer: Viewer? { parts.viewer }

  /// Returns true if all parts of the observations are equal.
  public static func == (left: Observation, right: Observation) -> Bool {
    left.parts === right.parts
      || left.object == right.object && left.keyPath == right.keyPath && left.options == right.options
        && left.context == right.context && left.viewer == right.viewer
  }

  /// Hashes the parts that equality compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(object)
    hasher.combine(keyPath)
    hasher.combine(options)
    hasher.combine(context)
    hasher.combine(viewer)
  }

  /// Returns the observed value in the state of `reader`.
  public func value(in reader: some ObjectReader) -> Value {
    guard let viewer else { return reader.value(of: object, at: keyPath) }
    return GuardedReader(reader, for: viewer).value(of: object, at: keyPath)
  }

  /// The fold of a collection of the object itself, if that is what is observed; nil for any other path, and if a
  /// viewer's read rules apply.
  var ownFold: CollectionFold? {
    guard viewer == nil, keyPath.keys.count == 1, let operation = keyPath.operation else { return nil }
    return CollectionFold(operation, ofKey: keyPath.keys[0])
  }

  /// The tree of the keys that the value is read from.
  var reads: KeyTree { viewer == nil ? keyPath.reads : keyPath.reads.guarded }

  /// Returns the initial notification: the whole value, as a setting.
  public func initialChange(cell: String?, in reader: some ObjectReader) -> Change {
    Change(of: self, cell: cell, old: nil, new: knownValue(in: reader))
  }
}

extension Observation {
  /// Returns the objects that the observed value is read through in the state of `reader`. As long as none of them
  /// changes, there is nothing to notify.
  public func objects(in reader: some ObjectReader) -> Set<Reference> {
    guard let entity = reader.record(object)?.entity else { return [object] }
    var objects: Set<Reference> = [object]
    reader.collectObjects(readBy: reads, from: object, entity, into: &objects)
    if viewer != nil { reader.collectObjects(readBy: entity.rules.reads, from: object, entity, into: &objects) }
    return objects
  }
}

extension Observation {
  /// The maximum number of observations that are examined one by one.
  private static let countLookedAt = 64

  /// Returns those of consecutive commits that can concern these observations, if the observations all read only their
  /// own objects: the commits that write one of these objects or bracket a key of it. All others leave the objects and
  /// the values read from them unchanged, so that for these observations the state before the returned commits is the
  /// state before all. `present` is the state after the last commit. Nil if the answer would take more work: a path
  /// leads to other objects, a rule decides, or there are too many observations.
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
        // An object that did not exist, or had another entity, may have read other objects.
        guard let record, record.entity === entity else { return nil }
        isConcerning = true
      }
      if !isConcerning { isConcerning = commit.touchesObject { entities[$0] != nil } }
      if isConcerning { concerning.append(commit) }
    }
    return concerning
  }

  /// Returns true if the value is read from the object alone, whatever its keys hold, as long as it has this entity.
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
  /// The values that a path continues through: the members of a collection, or the object that a to-one names.
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

/// The options of an observation (KVO guide, "Options"). They shape the payload and do not decide whether there is a
/// change.
public struct ObservingOptions: OptionSet, Hashable, Sendable {
  /// One bit per option.
  public let rawValue: UInt8

  /// Creates options from their bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The value after the change.
  public static let new = ObservingOptions(rawValue: 1)
  /// The value before the change.
  public static let old = ObservingOptions(rawValue: 2)
  /// A first notification with the state at registration.
  public static let initial = ObservingOptions(rawValue: 4)
  /// A separate notification before each change.
  public static let prior = ObservingOptions(rawValue: 8)

  private static let names: [String: ObservingOptions] = [
    "new": .new, "old": .old, "initial": .initial, "prior": .prior,
  ]

  /// Creates the option of this name (`new`, `old`, `initial`, `prior`); nil for any other name.
  public init?(name: String) {
    guard let option = Self.names[name] else { return nil }
    self = option
  }

  /// The names of the options that are set.
  public var optionNames: [String] {
    ["new", "old", "initial", "prior"].filter { Self.names[$0].map(contains) ?? false }
  }
}
