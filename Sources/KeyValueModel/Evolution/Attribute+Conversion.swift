extension Attribute {
  /// `value` of any attribute type in the form of this one, under its constraints, or why it has none.
  ///
  /// Texts stand for the JSON that they are: `"12.5"` for the number, `"true"` for the boolean, and the other way
  /// round. What would lose anything is refused: a fraction, the last digits of a large integer, the inside of an array
  /// or an object.
  func converted(_ value: Value) throws(Refusal) -> Value {
    switch (type, value) {
    case (.string, .bool), (.string, .integer), (.string, .number): return try accepting(.string(value.json))
    case (.string, .reference(let reference)), (.json, .reference(let reference)):
      return try accepting(.string(reference.text))
    case (.integer, .string(let text)), (.number, .string(let text)), (.boolean, .string(let text)):
      switch try? Value(json: text) {
      case let meant? where meant.isScalarOfJSON: return try converted(meant)
      default: throw Refusal(reason: "is \(value.json), which does not say \(type.article)")
      }
    case (.number, .integer(let integer)):
      guard Int64(exactly: Double(integer)) == integer else {
        throw Refusal(reason: "is \(value.json), which no double holds exactly")
      }
      return try accepting(value)
    default: return try accepting(value)
    }
  }

  /// Whether both allow the same values.
  func hasSameConstraints(as other: Attribute) -> Bool {
    type == other.type && minimum == other.minimum && maximum == other.maximum && minLength == other.minLength
      && maxLength == other.maxLength && pattern?.text == other.pattern?.text && allowedValues == other.allowedValues
  }
}

extension Value {
  /// Whether this is a number, true or false.
  fileprivate var isScalarOfJSON: Bool {
    switch self {
    case .bool, .integer, .number: true
    default: false
    }
  }
}
