/// A write that came to nothing because the journal could not take it: nothing was changed, and no observer was
/// notified.
package struct StoreUnavailable: Error, Hashable, Sendable {
  /// What is wrong with the disk, in words.
  package let reason: String
}
