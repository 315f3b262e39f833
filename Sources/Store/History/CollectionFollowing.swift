import Glibc
package import KeyValueModel
package import KeyValueObserving
import Support

/// The collections that observations are about to read through. They are followed portion by portion, so that
/// registering the observations keeps no writer waiting.
package struct CollectionFollowing: Sendable {
  /// The number of members that are followed at a time while writers wait: about a millisecond.
  private static let membersAtOnce = 1_000
  /// The time that writers have between two portions, in microseconds.
  private static let restMicroseconds: UInt32 = 1_000

  private var following = ObserverIndex.Following()

  /// No collections yet.
  package init() {}

  /// Follows the collections that observations read through. The caller calls `end`, whether or not they are
  /// registered. Throws `too-many-steps` where that takes more than `steps`, those of a request by default.
  package mutating func follow(
    _ observations: some Sequence<Observation>, in store: Store, steps: Int? = nil
  ) throws(ModelError) {
    // As many cells of one object and key path follow the same.
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

  /// Ends the following of collections that no observation has come to depend on.
  package func end(in store: Store) {
    guard !following.isEmpty else { return }
    store.withPublication { $0.observers.end(following) }
  }
}
