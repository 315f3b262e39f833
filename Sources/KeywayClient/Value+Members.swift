package import KeyValueModel

/// Reading JSON that a server has sent: nil for a value of another type.
extension Value {
  /// The text of a string.
  package var asString: String? { if case .string(let text) = self { text } else { nil } }
  /// A whole number.
  package var asInteger: Int64? { if case .integer(let integer) = self { integer } else { nil } }
  /// The elements of an array.
  package var asArray: [Value]? { if case .array(let elements) = self { elements } else { nil } }
  /// The members of an object.
  package var asObject: JSONObject? { if case .object(let object) = self { object } else { nil } }
}
