package import KeyValueModel

/// A row of a live list, as it is now.
package struct LiveRow: Hashable, Sendable {
  /// The object.
  package var reference: Reference
  /// What the server told last of its keys.
  package var value: JSONObject
  /// Where it stands.
  package var index: LiveIndex
}
