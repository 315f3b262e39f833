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

  init(state: ModelState, revision: Revision, oldestResumable: Revision) {
    self.state = state
    self.revision = revision
    self.oldestResumable = oldestResumable
  }
}
