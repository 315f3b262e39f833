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
  /// A list whose elements are in memory.
  case list([ExpressionValue])
  /// A list that provides its elements on demand.
  case lazyList(any ExpressionSequence)
  /// A map.
  case map(ExpressionMap)
  /// A type, by its name.
  case type(String)
  /// An object of the caller's.
  case object(any ExpressionObject)

  /// The name of the type that `type(value)` returns; for an object, the name of its entity.
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

  /// True if this is `null`.
  package var isNull: Bool {
    if case .null = self { true } else { false }
  }

  /// The value as a list of either kind; nil if it is not a list.
  package var asList: ExpressionList? {
    switch self {
    case .list(let elements): .elements(elements)
    case .lazyList(let sequence): .sequence(sequence)
    default: nil
    }
  }

  // MARK: Equality

  /// The maximum nesting depth to which values are compared.
  static let nestingLimit = 128

  /// Returns true if both are equal: values of different types are not, but numbers are compared as numbers, and an
  /// object is equal to the string that is its identity (CEL language definition, Equality). Comparing costs. Throws if
  /// the budget is spent, if the values are nested too deep, or if an element is not available.
  package func isEqual(
    to other: ExpressionValue, _ budget: inout EvaluationBudget, depth: Int = 0
  ) throws(EvaluationError) -> Bool {
    switch (self, other) {
    case (.null, .null): return true
    case (.bool(let left), .bool(let right)): return left == right
    case (.int(let left), .int(let right)): return left == right
    case (.string(let left), .string(let right)): return try left.isSame(as: right, &budget)
    case (.bytes(let left), .bytes(let right)):
      try budget.spend(bytes: left.count)
      return left == right
    case (.timestamp(let left), .timestamp(let right)): return left == right
    case (.duration(let left), .duration(let right)): return left == right
    case (.type(let left), .type(let right)): return left == right
    case (.object(let left), .object(let right)):
      return left === right ? true : try left.identity.isSame(as: right.identity, &budget)
    case (.object(let object), .string(let text)), (.string(let text), .object(let object)):
      return try object.identity.isSame(as: text, &budget)
    case (.map(let left), .map(let right)): return try left.isEqual(to: right, &budget, depth: depth)
    default:
      if let left = asList, let right = other.asList { return try left.isEqual(to: right, &budget, depth: depth) }
      return order(comparedAsNumberWith: other) == 0
    }
  }

  // MARK: Order

  /// Returns a number below 0, 0 or above 0 if this is less than, equal to or greater than `other`; nil if either is
  /// not a number or is NaN. An integer is compared with a double as a double, which the language's conformance tests
  /// require; integers of both types are compared exactly.
  private func order(comparedAsNumberWith other: ExpressionValue) -> Int? {
    switch (self, other) {
    case (.int(let left), .int(let right)): ExpressionValue.sign(left, right)
    case (.uint(let left), .uint(let right)): ExpressionValue.sign(left, right)
    case (.double(let left), .double(let right)): ExpressionValue.sign(left, right)
    case (.int(let left), .uint(let right)): left < right ? -1 : (left == right ? 0 : 1)
    case (.uint(let left), .int(let right)): left < right ? -1 : (left == right ? 0 : 1)
    case (.int(let left), .double(let right)): ExpressionValue.sign(Double(left), right)
    case (.uint(let left), .double(let right)): ExpressionValue.sign(Double(left), right)
    case (.double(let left), .int(let right)): ExpressionValue.sign(left, Double(right))
    case (.double(let left), .uint(let right)): ExpressionValue.sign(left, Double(right))
    default: nil
    }
  }

  private static func sign<Value: Comparable>(_ left: Value, _ right: Value) -> Int? {
    left < right ? -1 : (left == right ? 0 : (left > right ? 1 : nil))
  }

  /// Returns a number below 0, 0 or above 0 by the language's `<` (CEL language definition, Ordering); nil if one is
  /// NaN. Throws `noSuchOverload` if values of these types have no order; `operation` is named in its message.
  func order(
    to other: ExpressionValue, _ operation: String, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Int? {
    switch (self, other) {
    case (.string(let left), .string(let right)):
      try budget.spend(bytes: Swift.min(left.utf8.count, right.utf8.count))
      return left.compareBytes(right)
    case (.bool(let left), .bool(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
    case (.timestamp(let left), .timestamp(let right)): return ExpressionValue.sign(left, right)
    case (.duration(let left), .duration(let right)): return ExpressionValue.sign(left, right)
    case (.bytes(let left), .bytes(let right)):
      try budget.spend(bytes: Swift.min(left.count, right.count))
      return left.lexicographicallyPrecedes(right) ? -1 : (left == right ? 0 : 1)
    case (.int, .int), (.int, .uint), (.int, .double), (.uint, .int), (.uint, .uint), (.uint, .double),
      (.double, .int), (.double, .uint), (.double, .double):
      return order(comparedAsNumberWith: other)
    default: throw .noOverload(operation, self, other)
    }
  }

  /// Returns a number below 0, 0 or above 0 by the total order of the values that `min` and `max` take, which are
  /// numbers, strings, timestamps and durations. Equal numbers of different types are ordered int, uint, double, so
  /// that the least of a list does not depend on its order. Throws for other values, for two of different kinds, and
  /// for NaN.
  package func aggregateOrder(
    to other: ExpressionValue, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Int {
    switch (self, other) {
    case (.string, .string), (.timestamp, .timestamp), (.duration, .duration): break
    default:
      guard let rank = numberRank, let otherRank = other.numberRank else {
        throw .noOverload("and in min() or max()", self, other)
      }
      guard let order = order(comparedAsNumberWith: other) else { throw .invalid("NaN has no order in min() or max()") }
      return order == 0 ? rank - otherRank : order
    }
    return try order(to: other, "<", &budget) ?? 0
  }

  private var numberRank: Int? {
    switch self {
    case .int: 0
    case .uint: 1
    case .double: 2
    default: nil
    }
  }

  // MARK: Text

  /// The text in messages: short, and never the whole of a long text.
  package var debugText: String {
    switch self {
    case .null: "null"
    case .bool(let flag): String(flag)
    case .int(let number): String(number)
    case .uint(let number): "\(number)u"
    case .double(let number): ExpressionValue.text(of: number)
    case .string(let text): "'\(text.prefix(40))'"
    case .timestamp(let timestamp): timestamp.description
    case .duration(let duration): duration.description
    case .type(let name): name
    case .bytes, .list, .lazyList, .map, .object: "a \(typeName)"
    }
  }

  /// Returns a double as `string(double)` does: with as few digits as needed, without an exponent from 1e-7 to 1e21.
  static func text(of number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
    if number == 0 { return number.sign == .minus ? "-0" : "0" }
    let parts = ShortestDecimal(number)
    let digits = String(parts.mantissa.magnitude)
    let sign = parts.mantissa < 0 ? "-" : ""
    let point = digits.utf8.count + parts.exponent
    if parts.exponent >= 0, point <= 21 { return sign + digits + String(repeating: "0", count: parts.exponent) }
    if point > 0, point <= 21 { return "\(sign)\(digits.prefix(point)).\(digits.dropFirst(point))" }
    if point <= 0, point > -6 { return "\(sign)0." + String(repeating: "0", count: -point) + digits }
    let rest = digits.dropFirst()
    return "\(sign)\(digits.prefix(1))\(rest.isEmpty ? "" : ".")\(rest)e\(point > 0 ? "+" : "-")\(abs(point - 1))"
  }

  // MARK: Size

  /// Spends one for each element within lists and maps in memory, so that the text of a value is no longer than what
  /// the evaluation may cost. Throws if the budget is spent, or if the values are nested too deep.
  func spendSize(_ budget: inout EvaluationBudget, depth: Int = 0) throws(EvaluationError) {
    let parts: [ExpressionValue]
    switch self {
    case .list(let elements): parts = elements
    case .map(let map): parts = map.values
    case .string(let text) where depth > 0: return try budget.spend(text.utf8.count / EvaluationBudget.bytesPerUnit)
    default: return
    }
    guard depth < ExpressionValue.nestingLimit else { throw .depthLimitExceeded }
    try budget.spend(parts.count)
    for part in parts { try part.spendSize(&budget, depth: depth + 1) }
  }
}

extension ExpressionList {
  fileprivate func isEqual(
    to other: ExpressionList, _ budget: inout EvaluationBudget, depth: Int
  ) throws(EvaluationError) -> Bool {
    guard depth < ExpressionValue.nestingLimit else { throw .depthLimitExceeded }
    guard count == other.count else { return false }
    for index in 0..<count {
      try budget.spend()
      let left = try element(at: index)
      guard try left.isEqual(to: other.element(at: index), &budget, depth: depth + 1) else { return false }
    }
    return true
  }
}

extension ExpressionMap {
  fileprivate func isEqual(
    to other: ExpressionMap, _ budget: inout EvaluationBudget, depth: Int
  ) throws(EvaluationError) -> Bool {
    guard depth < ExpressionValue.nestingLimit else { throw .depthLimitExceeded }
    guard count == other.count else { return false }
    for (key, value) in zip(keys, values) {
      try budget.spend()
      guard let slot = ExpressionMapKey(key), let counterpart = other[slot] else { return false }
      guard try value.isEqual(to: counterpart, &budget, depth: depth + 1) else { return false }
    }
    return true
  }
}

extension String {
  fileprivate func isSame(as other: String, _ budget: inout EvaluationBudget) throws(EvaluationError) -> Bool {
    try budget.spend(bytes: Swift.min(utf8.count, other.utf8.count))
    return hasSameScalars(as: other)
  }
}

/// An object of the caller's that an expression reads by its keys. Two objects are equal if their identities are.
package protocol ExpressionObject: AnyObject, Sendable {
  /// The name of its entity.
  var typeName: String { get }
  /// The reference text, such as `Department/3`, which `==` and `in` compare, also with a string.
  var identity: String { get }
  /// Returns the value of a key. `index` is the number that the environment gave for the key when the expression was
  /// checked, -1 if it gave none or the type was not known. The cost of the computation is spent from `budget`. Throws
  /// `noSuchKey` if there is no such key, or the error that prevented the computation.
  func field(
    named name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue
  /// Returns the value of `has(object.name)`: true if the key has a value other than null. Throws as `field` does.
  func hasField(named name: String, index: Int, budget: inout EvaluationBudget) throws(EvaluationError) -> Bool
}

extension ExpressionObject {
  /// Reads the value.
  package func hasField(
    named name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Bool {
    try !field(named: name, index: index, budget: &budget).isNull
  }
}

/// The names of the language's types, as values of `type` show them.
enum TypeNames {
  static let null = "null_type"
  static let bool = "bool"
  static let int = "int"
  static let uint = "uint"
  static let double = "double"
  static let string = "string"
  static let bytes = "bytes"
  static let timestamp = "google.protobuf.Timestamp"
  static let duration = "google.protobuf.Duration"
  static let list = "list"
  static let map = "map"
  static let type = "type"

  /// The names that are values by themselves.
  static let denotations: Set<String> = [
    null, bool, int, uint, double, string, bytes, timestamp, duration, list, map, type,
  ]
}
