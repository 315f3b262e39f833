/// All functions: the language's own, those on strings, and Keyway's on lists.
///
/// To add a function, write its `FunctionDefinition` (name, overloads, implementation) in a file of this folder and
/// register it here: among `globals` when it is called as `name(value)`, among `members` when as `value.name()`, or
/// both. Checking, evaluation and the limits follow from the definition.
enum FunctionLibrary {
  /// The key by which a call is looked up.
  private struct Key: Hashable {
    let name: String
    let isMember: Bool
  }

  private static let functions: [Key: FunctionDefinition] = {
    var table: [Key: FunctionDefinition] = [:]
    for definition in globals { table[Key(name: definition.name, isMember: false)] = definition }
    for definition in members { table[Key(name: definition.name, isMember: true)] = definition }
    return table
  }()

  private static var globals: [FunctionDefinition] {
    ConversionFunctions.all + AggregateFunctions.all + MathFunctions.all
      + [SizeFunction.size, MatchFunction.matches, QuoteFunction.quote]
  }

  private static var members: [FunctionDefinition] {
    StringFunctions.all + TimestampFunctions.all + [SizeFunction.size, MatchFunction.matches, FormatFunction.format]
  }

  /// Returns the function `name`, called with or without a receiver; nil if there is none.
  static func function(_ name: String, isMember: Bool) -> FunctionDefinition? {
    functions[Key(name: name, isMember: isMember)]
  }
}

/// A function of the library under one name, with or without a receiver, which is its first argument.
struct FunctionDefinition: Sendable {
  /// Types of arguments and the type of the value for them.
  struct Overload: Sendable {
    let arguments: [ExpressionType]
    let result: ExpressionType
  }

  /// The implementation of a function, which is called with one value for each argument.
  typealias Implementation =
    @Sendable (_ arguments: FunctionArguments, _ budget: inout EvaluationBudget) throws(EvaluationError)
    -> ExpressionValue

  let name: String
  let overloads: [Overload]
  let implementation: Implementation

  init(_ name: String, _ overloads: [([ExpressionType], ExpressionType)], _ implementation: @escaping Implementation) {
    self.name = name
    self.overloads = overloads.map { Overload(arguments: $0.0, result: $0.1) }
    self.implementation = implementation
  }
}

/// The values that a function is called with. Access to a value of another type than requested throws `noSuchOverload`,
/// because types are not always known before evaluation.
struct FunctionArguments {
  let name: String
  let values: [ExpressionValue]

  var count: Int { values.count }

  subscript(index: Int) -> ExpressionValue { values[index] }

  /// The error that the function does not take these values.
  var mismatch: EvaluationError { .noOverload(function: name, values) }

  func string(_ index: Int) throws(EvaluationError) -> String {
    guard case .string(let text) = values[index] else { throw mismatch }
    return text
  }

  func list(_ index: Int) throws(EvaluationError) -> ExpressionList {
    guard let list = values[index].asList else { throw mismatch }
    return list
  }

  /// Returns the argument at `index`; nil if it is not given.
  func optionalInt(_ index: Int) throws(EvaluationError) -> Int64? { try index < count ? int(index) : nil }

  func int(_ index: Int) throws(EvaluationError) -> Int64 {
    guard case .int(let number) = values[index] else { throw mismatch }
    return number
  }
}
