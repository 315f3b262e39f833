package import KeyValueModel

/// A durable, published state with its revision. Immutable: its owner reads on undisturbed.
///
/// A class, so that a reader that takes it counts one reference and not each of the state's.
package final class Snapshot: Sendable {
  /// The objects.
  package let state: ModelState
  /// The last transaction that is in them.
  package let revision: Revision
  /// The earliest revision that can be resumed.
  package let oldestResumable: Revision
  /// About how many bytes the commits took that were published by then, since the start: between two states, what
  /// keeping the older one costs.
  package let writtenBytes: Int

  /// A state behind the commits of a history.
  convenience init(state: ModelState, revision: Revision, after history: History) {
    self.init(
      state: state, revision: revision, oldestResumable: history.oldestResumable(at: revision),
      writtenBytes: history.writtenBytes)
  }

  init(state: ModelState, revision: Revision, oldestResumable: Revision, writtenBytes: Int = 0) {
    self.state = state
    self.revision = revision
    self.oldestResumable = oldestResumable
    self.writtenBytes = writtenBytes
  }
}
