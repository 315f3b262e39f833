/// An expression that is ready to be evaluated: names are numbers, operators are code. The program of a node calls
/// those of its operands. Each spends one step, and throws why there is no value.
typealias Program = @Sendable (inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue

/// The programs of the nodes, by what the nodes are; `ProgramBuilder` puts them together.
enum Programs {
  /// A constant.
  static func literal(_ value: ExpressionValue) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      return value
    }
  }

  /// A comprehension's variable, by its number.
  static func local(_ number: Int) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      return frame.locals[number]
    }
  }

  /// A variable of the environment.
  static func variable(_ name: String, _ index: Int) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      return try frame.activation.value(ofVariable: name, index: index, budget: &frame.budget)
    }
  }

  /// The value of a collection function, which the caller gives.
  static func collectionFunction(_ index: Int) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      return try frame.activation.value(ofCollectionFunction: index, budget: &frame.budget)
    }
  }

  /// A name that stands for nothing, in an expression whose faults are left to evaluation.
  static func failure(_ message: String) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      throw EvaluationError(.undeclaredReference, message)
    }
  }

  /// A function of the library.
  static func call(_ function: FunctionDefinition, _ arguments: [Program]) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let values = FunctionArguments(name: function.name, values: try values(arguments, &frame))
      return try function.implementation(values, &frame.budget)
    }
  }

  /// `matches` with a pattern that is a constant.
  static func match(_ operand: @escaping Program, _ program: RegexProgram) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let value = try operand(&frame)
      guard case .string(let text) = value else { throw .noOverload("matches", value, .string("")) }
      return .bool(try RegexMachine.matches(program, text, &frame.budget))
    }
  }

  /// `sum` of a list whose type of elements is known, which decides what the sum of none is.
  static func sum(_ operand: @escaping Program, emptyValue: ExpressionValue) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      return try AggregateFunctions.sum(operand(&frame), emptyValue: emptyValue, &frame.budget)
    }
  }

  /// The values of operands, in order.
  static func values(
    _ operands: [Program], _ frame: inout EvaluationFrame
  ) throws(EvaluationError) -> [ExpressionValue] {
    var values: [ExpressionValue] = []
    values.reserveCapacity(operands.count)
    for operand in operands { values.append(try operand(&frame)) }
    return values
  }
}
