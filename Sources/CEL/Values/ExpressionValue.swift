/// A value of the language (CEL language definition, Values), and Keyway's objects and lazy lists.
package enum ExpressionValue: Sendable {
  /// No value.
  case null
  /// True or false.
  case bool(Bool)
  /// A signed integer.
  case int(Int64)
  /// An unsigned integer.
  case uint(UInt64)
  /// A double, perhaps infinite or not a number.
  case double(Double)
  /// A text; equality is that of Unicode scalars.
  case string(String)
  /// Bytes.
  case bytes([UInt8])
  /// An instant of the years 1 to 9999.
  case timestamp(ExpressionTimestamp)
  /// A span of time.
  case duration(ExpressionDuration)
  /// A list whose elements are at hand.
  case list([ExpressionValue])
  /// A list that gives its elements when asked.
  case lazyList(any ExpressionSequence)
  /// A map.
  case map(ExpressionMap)
  /// A type, by its name.
  case type(String)
  /// An object of the caller's.
  case object(any ExpressionObject)

  /// The name that `type(value)` has; an object's is that of its entity.
  package var typeName: String {
    switch self {
    case .null: TypeNames.null
    case .bool: TypeNames.bool
    case .int: TypeNames.int
    case .uint: TypeNames.uint
    case .double: TypeNames.double
    case .string: TypeNames.string
    case .bytes: TypeNames.bytes
    case .timestamp: TypeNames.timestamp
    case .duration: TypeNames.duration
    case .list, .lazyList: TypeNames.list
    case .map: TypeNames.map
    case .type: TypeNames.type
    case .object(let object): object.typeName
    }
  }

  /// Whether this is `null`.
  package var isNull: Bool {
    if case .null = self { true } else { false }
  }

  /// This as a list of either kind, else nil.
  package var asList: ExpressionList? {
    switch self {
    case .list(let elements): .elements(elements)
    case .lazyList(let sequence): .sequence(sequence)
    default: nil
    }
  }
}
