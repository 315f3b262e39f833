package import KeyValueModel
import OrderedCollections

/// Short forms to read JSON. A missing member or element is null.
extension Value {
  /// The member of an object.
  package subscript(name: String) -> Value {
    guard case .object(let object) = self else { return .null }
    return object[name] ?? .null
  }

  /// The element of an array.
  package subscript(index: Int) -> Value {
    items.indices.contains(index) ? items[index] : .null
  }

  /// Returns true if an object has a member, even a null one.
  package func has(_ name: String) -> Bool {
    guard case .object(let object) = self else { return false }
    return object[name] != nil
  }

  /// The names of an object's members, in order.
  package var names: [String] {
    guard case .object(let object) = self else { return [] }
    return Array(object.members.keys)
  }

  /// The elements of an array.
  package var items: [Value] {
    guard case .array(let elements) = self else { return [] }
    return elements
  }

  /// The text of a string.
  package var text: String? {
    guard case .string(let text) = self else { return nil }
    return text
  }

  /// A whole number.
  package var whole: Int? {
    guard case .integer(let integer) = self else { return nil }
    return Int(integer)
  }

  /// A number of either kind.
  package var double: Double? {
    switch self {
    case .integer(let integer): Double(integer)
    case .number(let number): number
    default: nil
    }
  }
}
