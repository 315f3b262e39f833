import CEL
import Support

/// The value of a key, and of a JSON text: one type for both, so that no conversion is needed.
///
/// An `integer` is exact over all 64 bits. A `number` is an IEEE double that reads back as the same double. Values of
/// `date` keys are strings in the format of RFC 3339, stored as they were written.
public enum Value: Hashable, Sendable {
  /// The absence of a value.
  case null
  /// True or false.
  case bool(Bool)
  /// A whole number of 64 bits.
  case integer(Int64)
  /// A finite IEEE double. -0.0 is distinct from 0.0, so a collection may have both; a sort, a filter, an index and an
  /// `enum` treat the two as equal.
  case number(Double)
  /// A number of a JSON text that neither a 64-bit integer nor a double holds exactly, as the nearest double, which is
  /// whole: `1.00000000000000000001`. A key of type `integer` refuses it, all others take the double. Never stored, and
  /// equal to the double.
  case rounded(Double)
  /// Unicode text.
  case string(String)
  /// The name of another object; written in JSON as a string.
  case reference(Reference)
  /// A list, in order.
  case array([Value])
  /// The members of a to-many, in order; written in JSON as an array, and equal to the array of the same values.
  case members(MemberList)
  /// The members of a JSON object.
  indirect case object(JSONObject)

  /// True if the value is null.
  public var isNull: Bool {
    if case .null = self { return true }
    return false
  }

  /// Returns true if both are equal as data. Strings are compared byte by byte, whereas Swift's own comparison treats
  /// canonically equivalent strings as equal.
  public static func == (left: Value, right: Value) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.number(let left), .number(let right)), (.rounded(let left), .rounded(let right)),
      (.number(let left), .rounded(let right)), (.rounded(let left), .number(let right)):
      left.bitPattern == right.bitPattern
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.reference(let left), .reference(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.members(let left), .members(let right)): left == right
    case (.members(let list), .array(let array)), (.array(let array), .members(let list)):
      list.count == array.count && list.elementsEqual(array)
    case (.object(let left), .object(let right)): left == right
    default: false
    }
  }

  /// Hashes what equality compares.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .bool(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .number(let value), .rounded(let value): hasher.combine(value.bitPattern)
    case .string(let text): hasher.combine(text)
    case .reference(let reference): hasher.combine(reference)
    case .array(let elements):
      hasher.combine(elements.count)
      for element in elements { hasher.combine(element) }
    case .members(let list):
      hasher.combine(list.count)
      for member in list { hasher.combine(member) }
    case .object(let object): hasher.combine(object)
    }
  }

  /// The elements of an array or a collection; nil for all other values.
  public var elements: [Value]? {
    switch self {
    case .array(let elements): elements
    case .members(let list): list.array
    default: nil
    }
  }

  /// The number of elements of an array or a collection; 0 for all other values.
  var elementCount: Int {
    switch self {
    case .array(let elements): elements.count
    case .members(let list): list.count
    default: 0
    }
  }

  /// True if the value is or contains a `rounded` number. O(n).
  var isUnsettled: Bool {
    switch self {
    case .rounded: true
    case .array(let elements): elements.contains(where: \.isUnsettled)
    case .object(let object): object.members.values.contains(where: \.isUnsettled)
    default: false
    }
  }

  /// The value with each `rounded` number replaced by its double. O(n); a copy only if there are such numbers.
  var settled: Value { isUnsettled ? settledCopy : self }

  private var settledCopy: Value {
    switch self {
    case .rounded(let number): return .number(number)
    case .array(let elements): return .array(elements.map(\.settledCopy))
    case .object(var object):
      for name in object.members.keys { _ = object.members.change(name) { $0 = $0.settledCopy } }
      return .object(object)
    default: return self
    }
  }

  /// The kind of the JSON value with its article, for messages.
  var kind: String {
    switch self {
    case .null: "null"
    case .bool: "a boolean"
    case .integer, .number, .rounded: "a number"
    case .string, .reference: "a string"
    case .array, .members: "an array"
    case .object: "an object"
    }
  }

  /// The 64-bit integer that a number equals, however it is written in JSON: `1`, `1.0` and `1e0` alike. Nil for a
  /// number that has a fraction, is too large or is known only approximately, and for all other values.
  package var wholeNumber: Int64? {
    switch self {
    case .integer(let integer): integer
    // As everywhere, a double stands for the shortest decimal that reads back as it.
    case .number(let number): ShortestDecimal(number).integer
    default: nil
    }
  }

  /// The value, but 0.0 in place of -0.0, for comparisons that treat the two as equal.
  var withoutSignOfZero: Value {
    if case .number(0) = self { .number(0) } else { self }
  }

  /// True for null and for an empty collection.
  var isEmptyOrNull: Bool {
    if case .members(let list) = self { return list.isEmpty }
    return isNull
  }
}

/// Typed access to JSON; nil for a value of another type.
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
