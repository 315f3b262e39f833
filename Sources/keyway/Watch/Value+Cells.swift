import KeyValueModel

/// Values in the cells of a table.
extension Value {
  /// A string or a reference without its quotation marks, all else as JSON.
  var plainText: String {
    switch self {
    case .string(let text): text
    case .reference(let reference): reference.text
    default: json
    }
  }

  /// Whether this is a number of either sort.
  var isNumber: Bool {
    switch self {
    case .integer, .number: true
    default: false
    }
  }

  /// Whether this is a number or no value.
  var isNumberOrNull: Bool { isNumber || isNull }
}
