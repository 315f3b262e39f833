import Support

extension Attribute {
  /// Why a value is refused, as a clause: `is over the maximum 10`.
  struct Refusal: Error {
    let reason: String
  }

  /// `value` in the form of this attribute's type, or why it cannot be: an integer is made of a double that stands for
  /// one, a number of an integer. Null is not for this function.
  func accepting(_ value: Value) throws(Refusal) -> Value {
    let converted = try converting(value)
    try checkRange(converted)
    try checkText(converted)
    if let allowedValues, !allowedValues.contains(where: { $0.withoutSignOfZero == converted.withoutSignOfZero }) {
      let list = allowedValues.map(\.json).joined(separator: ", ")
      throw Refusal(reason: "is \(converted.json), which is none of \(list)")
    }
    return converted
  }

  /// `value` in the form of this attribute's type, which may still break a constraint.
  func converting(_ value: Value) throws(Refusal) -> Value {
    switch (type, value) {
    case (.string, .string), (.integer, .integer), (.number, .number), (.boolean, .bool): return value
    case (.json, _), (.number, .rounded): return value.settled
    case (.number, .integer(let integer)): return .number(Double(integer))
    case (.integer, .number):
      guard let integer = value.wholeNumber else {
        throw Refusal(reason: "wants a whole number of 64 bits and is \(value.json)")
      }
      return .integer(integer)
    case (.integer, .rounded):
      throw Refusal(reason: "wants a whole number of 64 bits and is about \(value.json), but not exactly")
    case (.date, .string(let text)):
      guard RFC3339.isDate(text) else {
        throw Refusal(
          reason: "wants a date of RFC 3339 such as 2010-03-01 or 2010-03-01T09:30:00Z and is \(value.json)")
      }
      return value
    default: throw Refusal(reason: "wants \(type.article) and is \(value.kind)")
    }
  }

  private func checkRange(_ value: Value) throws(Refusal) {
    if let minimum, Self.isLess(value, minimum) {
      throw Refusal(reason: "is \(value.json), under the minimum \(minimum.json)")
    }
    if let maximum, Self.isLess(maximum, value) {
      throw Refusal(reason: "is \(value.json), over the maximum \(maximum.json)")
    }
  }

  /// Compares two values of one numeric type.
  static func isLess(_ left: Value, _ right: Value) -> Bool {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): left < right
    case (.number(let left), .number(let right)): left < right
    default: false
    }
  }

  private func checkText(_ value: Value) throws(Refusal) {
    guard minLength != nil || maxLength != nil || pattern != nil, case .string(let text) = value else { return }
    let length = text.unicodeScalars.count
    if let minLength, length < minLength {
      throw Refusal(reason: "has \(length) characters, fewer than minLength \(minLength)")
    }
    if let maxLength, length > maxLength {
      throw Refusal(reason: "has \(length) characters, more than maxLength \(maxLength)")
    }
    if let pattern, !pattern.matches(text) {
      throw Refusal(reason: "does not match the pattern \(pattern.text)")
    }
  }
}

extension AttributeType {
  /// The type with its article, for sentences.
  var article: String { self == .integer ? "an integer" : "a \(rawValue)" }
}
