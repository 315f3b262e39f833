import KeyValueModel

/// Reading JSON without ceremony: what is not there is null.
extension Value {
  /// The member of an object.
  func member(_ name: String) -> Value {
    guard case .object(let object) = self else { return .null }
    return object[name] ?? .null
  }

  /// A whole number; nil where it is none.
  var whole: Int64? {
    guard case .integer(let integer) = self else { return nil }
    return integer
  }

  /// The text of a string; nil where it is none.
  var text: String? {
    guard case .string(let text) = self else { return nil }
    return text
  }
}
