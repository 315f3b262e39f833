import KeyValueModel

/// What the observers of one commit may see who may not read everything: an object counts as readable by the states
/// before and after the whole commit, and what is told of it lies in a state in which it is.
final class CommitGuard {
  /// Whether an object may be read before and after the commit. One that is not there is as it is where it is.
  struct Sight {
    let before: Bool
    let after: Bool
  }

  private struct Question: Hashable {
    let viewer: Viewer
    let object: Reference
  }

  /// The state before the commit.
  let start: Edge
  /// The state after it.
  let end: Edge
  private var known: [Question: Sight] = [:]
  /// What was told last of each observation.
  var told: [ObserverIndex.TrackedID: Value] = [:]
  /// The observations of someone who may not read everything that the commit touches.
  var touched: Set<ObserverIndex.TrackedID> = []

  /// `state` is any that the commit passes through.
  init(_ commit: Commit, state: PastState) {
    let before = Dictionary(commit.before.map { ($0.object, $0.record) }) { first, _ in first }
    var after = before
    commit.forEachWrite { after.updateValue($1, forKey: $0) }
    start = Edge(touched: before, others: state)
    end = Edge(touched: after, others: state)
  }

  /// The state on one side of a commit.
  struct Edge: ObjectReader {
    /// The objects that the commit touches; nil for those that are not there.
    let touched: [Reference: ObjectRecord?]
    let others: PastState

    func record(_ reference: Reference) -> ObjectRecord? {
      if let record = touched[reference] { return record }
      return others.record(reference)
    }
  }

  /// Whether a viewer may read an object before and after the commit.
  func sight(of object: Reference, for viewer: Viewer) -> Sight {
    let question = Question(viewer: viewer, object: object)
    if let sight = known[question] { return sight }
    let before = start.record(object).map { viewer.mayRead(object, $0, in: start) }
    let after = end.record(object).map { viewer.mayRead(object, $0, in: end) }
    let sight = Sight(before: before ?? after ?? false, after: after ?? before ?? false)
    known[question] = sight
    return sight
  }

  /// Whether a viewer may read all objects along the keys of a path, before and after the commit.
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

  /// What a viewer may be told of a state within the commit, as what was or as what is.
  struct Reader<Base: ObjectReader>: ObjectReader {
    let base: Base
    let guarding: CommitGuard
    let viewer: Viewer
    let isBefore: Bool

    func record(_ reference: Reference) -> ObjectRecord? {
      guard base.record(reference) != nil else { return nil }
      let sight = guarding.sight(of: reference, for: viewer)
      guard isBefore ? sight.before : sight.after else { return nil }
      // What is readable on one side alone is told as it stands there.
      if sight.before, sight.after { return base.record(reference) }
      return (isBefore ? guarding.start : guarding.end).record(reference)
    }

    var unguarded: (any ObjectReader)? { base }

    func hides(_ key: Int, of entity: Entity) -> Bool { viewer.hiddenKeys(of: entity).contains(key) }
  }
}
