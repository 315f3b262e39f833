/// The reason why an expression has no value. `&&`, `||`, `all` and `exists` absorb it if another operand decides (CEL
/// language definition, Logical Operators), unless a limit was reached.
package struct EvaluationError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of a fault.
  package enum Kind: String, Sendable {
    /// No function or operator takes values of these types.
    case noSuchOverload
    /// A map or an object has no such key.
    case noSuchKey
    /// The name is not declared.
    case undeclaredReference
    /// An integer was divided by 0.
    case divisionByZero
    /// A result is out of the range of its type.
    case outOfRange
    /// An argument is not one that the function takes.
    case invalidArgument
    /// A map literal gives a key twice.
    case duplicateKey
    /// The evaluation cost more than it may.
    case costLimitExceeded
    /// The evaluation was nested deeper than it may be.
    case depthLimitExceeded
    /// A value that the caller should have provided is not available.
    case unavailable
  }

  /// The kind.
  package let kind: Kind
  /// The description of the fault, for people.
  package let message: String

  /// Creates a fault of `kind`.
  package init(_ kind: Kind, _ message: String) {
    (self.kind, self.message) = (kind, message)
  }

  /// True if a limit was reached: such a fault ends the whole evaluation and is never absorbed.
  package var isLimit: Bool { kind == .costLimitExceeded || kind == .depthLimitExceeded }

  /// `kind: message`.
  package var description: String { "\(kind.rawValue): \(message)" }
}

extension EvaluationError {
  /// The evaluation cost more than its budget.
  package static var costLimitExceeded: EvaluationError {
    EvaluationError(.costLimitExceeded, "the evaluation exceeds its cost limit")
  }

  /// The evaluation is nested deeper than its budget.
  package static var depthLimitExceeded: EvaluationError {
    EvaluationError(.depthLimitExceeded, "the evaluation exceeds its depth limit")
  }

  static func noSuchKey(_ key: String) -> EvaluationError { EvaluationError(.noSuchKey, "no such key: \(key)") }

  static func overflow(_ type: String) -> EvaluationError { EvaluationError(.outOfRange, "\(type) overflow") }

  static func noOverload(_ operation: String, _ left: ExpressionValue, _ right: ExpressionValue) -> EvaluationError {
    EvaluationError(.noSuchOverload, "no such overload: \(left.typeName) \(operation) \(right.typeName)")
  }

  static func noOverload(function: String, _ arguments: [ExpressionValue]) -> EvaluationError {
    let types = arguments.map(\.typeName).joined(separator: ", ")
    return EvaluationError(.noSuchOverload, "no such overload: \(function)(\(types))")
  }

  static func invalid(_ message: String) -> EvaluationError { EvaluationError(.invalidArgument, message) }

  static func notBool(_ value: ExpressionValue) -> EvaluationError {
    EvaluationError(.noSuchOverload, "a condition must be a bool, not \(value.typeName)")
  }
}
