import KeyValueModel
import Support
import Synchronization

/// The state that readers find, and how far it has come, which every request asks. There is no lock for that: each
/// thread that takes one writes to it.
final class LatestSnapshot: Sendable {
  private let latest: Locked<Snapshot>
  private let latestRevision: Atomic<Revision>

  /// Readers find this state first.
  init(_ snapshot: Snapshot) {
    latest = Locked(snapshot)
    latestRevision = Atomic(snapshot.revision)
  }

  /// The state.
  var snapshot: Snapshot { latest.withLock { $0 } }

  /// Its revision. Who has seen a state, finds at least its revision.
  var revision: Revision { latestRevision.load(ordering: .acquiring) }

  /// From now on readers find this state.
  func show(_ snapshot: Snapshot) {
    latest.withLock {
      $0 = snapshot
      latestRevision.store(snapshot.revision, ordering: .releasing)
    }
  }
}
