/// The types of attributes.
public enum AttributeType: String, Hashable, Sendable, CaseIterable {
  /// Unicode text.
  case string
  /// A whole number of 64 bits.
  case integer
  /// An IEEE double.
  case number
  /// True or false.
  case boolean
  /// A `full-date` or `date-time` of RFC 3339.
  case date
  /// Any JSON value.
  case json
}
