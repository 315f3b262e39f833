/// The type of an expression as far as it is known before evaluation (CEL language definition, Gradual Type Checking).
/// A value of any type may also be null when it is evaluated, because keys may have no value.
package indirect enum ExpressionType: Sendable, Hashable {
  /// Only null.
  case null
  /// `bool`.
  case bool
  /// `int`, 64 bits.
  case int
  /// `uint`, 64 bits.
  case uint
  /// `double`.
  case double
  /// `string`.
  case string
  /// `bytes`.
  case bytes
  /// `google.protobuf.Timestamp`.
  case timestamp
  /// `google.protobuf.Duration`.
  case duration
  /// The type of types.
  case type
  /// A list of elements of one type.
  case list(ExpressionType)
  /// A map.
  case map(ExpressionType, ExpressionType)
  /// Any type: known only when evaluated.
  case dyn
  /// An object of the entity with this name.
  case object(String)

  // MARK: Relations

  /// Returns true if a value of this type can be an argument for `parameter`, as far as is known.
  func isAssignable(to parameter: ExpressionType) -> Bool {
    switch (self, parameter) {
    case (.dyn, _), (_, .dyn): true
    case (.list(let own), .list(let other)): own == .null || own.isAssignable(to: other)
    case (.map(let ownKey, let ownValue), .map(let key, let value)):
      ownKey.isAssignable(to: key) && (ownValue == .null || ownValue.isAssignable(to: value))
    default: self == parameter
    }
  }

  /// Returns true if values of both types may be compared with `==`: any with null, numbers of all types with one
  /// another, an object with its reference text, and objects of all entities, since one may extend the other.
  func isComparable(with other: ExpressionType) -> Bool {
    switch (self, other) {
    case (.dyn, _), (_, .dyn), (.null, _), (_, .null): true
    case (.object, .string), (.string, .object), (.object, .object): true
    case (.list(let own), .list(let other)): own.isComparable(with: other)
    case (.map(let ownKey, let ownValue), .map(let key, let value)):
      ownKey.isComparable(with: key) && ownValue.isComparable(with: value)
    default: self == other || (isNumber && other.isNumber)
    }
  }

  /// Returns true if values of both types have an order.
  func isOrdered(with other: ExpressionType) -> Bool {
    switch (self, other) {
    case (.dyn, .dyn): true
    case (.dyn, _): other.isOrdered
    case (_, .dyn): isOrdered
    default: isOrdered && (self == other || (isNumber && other.isNumber))
    }
  }

  /// True if it is a number type.
  var isNumber: Bool { self == .int || self == .uint || self == .double }

  private var isOrdered: Bool {
    switch self {
    case .bool, .int, .uint, .double, .string, .bytes, .timestamp, .duration: true
    default: false
    }
  }

  /// Returns the common type of two values; nil if none but `dyn` fits. Null fits every type, because any value may be
  /// null.
  func joined(with other: ExpressionType) -> ExpressionType? {
    switch (self, other) {
    case (.null, _): other
    case (_, .null): self
    case (.dyn, _), (_, .dyn): .dyn
    case (.list(let own), .list(let other)): .list(own.joined(with: other) ?? .dyn)
    case (.map(let ownKey, let ownValue), .map(let key, let value)):
      .map(ownKey.joined(with: key) ?? .dyn, ownValue.joined(with: value) ?? .dyn)
    default: self == other ? self : nil
    }
  }
}

extension ExpressionType: CustomStringConvertible {
  /// The text in messages, such as `list(int)`.
  package var description: String {
    switch self {
    case .null: "null"
    case .bool: "bool"
    case .int: "int"
    case .uint: "uint"
    case .double: "double"
    case .string: "string"
    case .bytes: "bytes"
    case .timestamp: "timestamp"
    case .duration: "duration"
    case .type: "type"
    case .list(let element): "list(\(element))"
    case .map(let key, let value): "map(\(key), \(value))"
    case .dyn: "dyn"
    case .object(let name): name
    }
  }
}
