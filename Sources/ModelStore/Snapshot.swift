package import KeyValueModel

/// A durable, published state with its revision. A value: whoever holds one reads on undisturbed.
package struct Snapshot: Sendable {
  /// The objects.
  package let state: ModelState
  /// The last transaction that is in them.
  package let revision: Revision
}
