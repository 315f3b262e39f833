import Glibc
package import KeyValueModel
package import KeyValueObserving
import Support

/// The collections that observations are about to read through. They are followed in portions, so that registering the
/// observations does not block writers.
package struct CollectionFollowing: Sendable {
  /// The number of members that are followed at a time while writers wait, which takes about a millisecond.
  private static let membersAtOnce = 1_000
  /// The pause between two portions that leaves time to the writers, in microseconds.
  private static let restMicroseconds: UInt32 = 1_000

  private var following = ObserverIndex.Following()

  /// Creates a value that follows no collections yet.
  package init() {}

  /// Follows the collections that observations read through. The caller calls `end` whether or not the observations are
  /// registered. Throws `too-many-steps` if this takes more than `steps`, which defaults to the steps of a request.
  package mutating func follow(
    _ observations: some Sequence<Observation>, in store: Store, steps: Int? = nil
  ) throws(ModelError) {
    // The observations of many cells on one object and key path follow the same collections.
    let state = store.snapshot.state
    let distinct = Set(observations.lazy.filter { !$0.isPlain(in: state) }.map(\.withoutValues))
    guard !distinct.isEmpty else { return }
    let steps = steps ?? store.limits.queryOpeningCost
    var left = steps / ObservationBudget.stepsPerLink
    while true {
      let (next, isDone) = store.withPublication { [following] publication in
        var next = following
        let isDone = publication.observers.follow(
          distinct, &next, members: Self.membersAtOnce, in: publication.snapshot.state)
        return (next, isDone)
      }
      following = next
      if isDone { return }
      left -= Self.membersAtOnce
      guard left > 0 else {
        throw ModelError(
          .tooManySteps, "following the members of the collections takes more than \(steps) steps (request.steps)")
      }
      usleep(Self.restMicroseconds)
    }
  }

  /// Stops following the collections that no observation depends on.
  package func end(in store: Store) {
    guard !following.isEmpty else { return }
    store.withPublication { $0.observers.end(following) }
  }
}
