import KeyValueModel

/// Decides what observers that may not read everything may see of one commit. An object counts as readable by the
/// states before and after the whole commit, and its values are taken from a state in which it is readable.
final class CommitGuard {
  /// The readability of an object before and after the commit. If the object does not exist on one side, the other side
  /// determines both.
  struct Sight {
    let before: Bool
    let after: Bool
  }

  private struct Question: Hashable {
    let viewer: Viewer
    let object: Reference
  }

  /// The state before the commit.
  private let start: Edge
  /// The state after it.
  private let end: Edge
  private var known: [Question: Sight] = [:]
  /// The value that was last notified of each observation.
  var told: [ObserverIndex.TrackedID: Value] = [:]
  /// The observations of viewers who may not read everything that the commit touches.
  var touched: Set<ObserverIndex.TrackedID> = []

  /// Creates the guard of a commit. `state` is any state that the commit passes through.
  init(_ commit: Commit, state: PastState) {
    let before = Dictionary(commit.before.map { ($0.object, $0.record) }) { first, _ in first }
    var after = before
    commit.forEachWrite { after.updateValue($1, forKey: $0) }
    start = Edge(touched: before, others: state)
    end = Edge(touched: after, others: state)
  }

  /// The state on one side of a commit.
  private struct Edge: ObjectReader {
    /// The objects that the commit touches; nil for those that do not exist.
    let touched: [Reference: ObjectRecord?]
    let others: PastState
    private let meter = ReadingWork(steps: .max)

    init(touched: [Reference: ObjectRecord?], others: PastState) {
      self.touched = touched
      self.others = others
    }

    var work: ReadingWork? { meter }

    func record(_ reference: Reference) -> ObjectRecord? {
      guard meter.spend() else { return nil }
      if let record = touched[reference] { return record }
      return others.record(reference)
    }
  }

  /// Returns whether a viewer may read an object before and after the commit. Evaluating the rules takes steps from
  /// `meter`; once that has stopped, the result is invalid.
  func sight(of object: Reference, for viewer: Viewer, within meter: ReadingWork? = nil) -> Sight {
    let question = Question(viewer: viewer, object: object)
    if let sight = known[question] { return sight }
    var steps = meter?.remainingSteps ?? .max
    func isReadable(in edge: Edge) -> Bool? {
      guard let work = edge.work else { return nil }
      work.restart(steps: steps)
      let isReadable = edge.record(object).map { viewer.mayRead(object, $0, in: edge) }
      meter?.spend(work.stop == nil ? work.spentSteps : steps + 1)
      steps = meter?.remainingSteps ?? .max
      return isReadable
    }
    let before = isReadable(in: start)
    let after = isReadable(in: end)
    let sight = Sight(before: before ?? after ?? false, after: after ?? before ?? false)
    if meter?.stop == nil { known[question] = sight }
    return sight
  }

  /// Returns true if a viewer may read all objects along the keys of a path, before and after the commit, and the path
  /// has no operation that reads keys of members.
  func seesAll(along observation: Observation, for viewer: Viewer, in state: PastState) -> Bool {
    var owner = observation.object
    for (index, key) in observation.keyPath.keys.enumerated() {
      let sight = sight(of: owner, for: viewer)
      guard sight.before, sight.after else { return false }
      guard index < observation.keyPath.keys.count - 1 else { break }
      guard case .reference(let next) = state.value(of: owner, key: key) else { break }
      owner = next
    }
    return observation.keyPath.operation?.memberKeys.isEmpty ?? true
  }

  /// A reader of what a viewer may see of a state within the commit, as the old or as the new state.
  fileprivate struct Reader<Base: ObjectReader>: ObjectReader {
    let base: Base
    let guarding: CommitGuard
    let viewer: Viewer
    let isBefore: Bool

    func record(_ reference: Reference) -> ObjectRecord? {
      guard base.record(reference) != nil else { return nil }
      let sight = guarding.sight(of: reference, for: viewer, within: base.work)
      guard base.work?.stop == nil else { return nil }
      guard isBefore ? sight.before : sight.after else { return nil }
      // An object that is readable on one side alone is shown as it is on that side.
      if sight.before, sight.after { return base.record(reference) }
      return (isBefore ? guarding.start : guarding.end).record(reference)
    }

    var unguarded: (any ObjectReader)? { base }

    var work: ReadingWork? { base.work }

    func hides(_ key: Int, of entity: Entity) -> Bool { viewer.hiddenKeys(of: entity).contains(key) }
  }
}

extension Observation {
  /// Returns the observed value in a state within a commit, as the old or as the new value. `guarding` decides what may
  /// be seen.
  func value(in reader: some ObjectReader, within guarding: CommitGuard?, isBefore: Bool) -> Value {
    guard let viewer, let guarding else { return value(in: reader) }
    return CommitGuard.Reader(base: reader, guarding: guarding, viewer: viewer, isBefore: isBefore)
      .value(of: object, at: keyPath)
  }
}
