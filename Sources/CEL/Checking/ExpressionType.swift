/// The type of an expression as far as it is known before evaluation (CEL language definition, Gradual Type Checking).
/// A value of any type may also be null when it is evaluated: keys have no values at times.
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
  /// Anything: known only when evaluated.
  case dyn
  /// An object of the entity with this name.
  case object(String)
}

extension ExpressionType: CustomStringConvertible {
  /// As messages show it, such as `list(int)`.
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
