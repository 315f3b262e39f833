package import KeyValueModel

/// A row of a live list, as it is now.
package struct LiveRow: Hashable, Sendable {
  /// The object.
  package var reference: Reference
  /// Its keys as the server sent them last.
  package var value: JSONObject

  /// A row of that object, with these keys.
  package init(reference: Reference, value: JSONObject) {
    self.reference = reference
    self.value = value
  }
}
