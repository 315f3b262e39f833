/// An expression that is ready to be evaluated: names are numbers, operators are code. The program of a node calls
/// those of its operands. Each spends one step, and throws the reason if there is no value.
typealias Program = @Sendable (inout EvaluationFrame) throws(EvaluationError) -> ExpressionValue

/// Makes the program of a checked tree.
struct ProgramBuilder {
  private let source: Expression
  private let names: NameTable
  /// The maximum number of comprehension variables that are in scope at once.
  private(set) var localCount = 0

  init(_ source: Expression, _ names: NameTable) { (self.source, self.names) = (source, names) }

  /// Returns the program of `node`. Throws if a constant pattern is not a regular expression.
  ///
  /// Functions that call one another recursively for nested nodes are small, because their frames are on one stack.
  mutating func program(for node: ExpressionNode) throws(ExpressionError) -> Program {
    switch node.kind {
    case .literal(let value): Programs.literal(value)
    case .collectionFunction(let index): Programs.collectionFunction(index)
    case .identifier, .select: try reference(node)
    case .call: try call(node)
    case .list, .map: try literal(node)
    case .comprehension: try comprehension(node)
    default: try operation(node)
    }
  }

  private mutating func operation(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    let operands = try programs(for: node.kind.children)
    switch node.kind {
    case .has(_, let field): return Programs.presence(operands[0], field, fieldIndex(node))
    case .index: return Programs.index(operands[0], operands[1])
    case .unary(let sign, _): return Programs.unary(sign, operands[0])
    case .binary(let sign, _, _): return Programs.binary(sign, operands[0], operands[1])
    case .all: return Programs.logical(operands, decisive: false)
    case .any: return Programs.logical(operands, decisive: true)
    case .conditional: return Programs.conditional(operands[0], operands[1], operands[2])
    default: return Programs.failure("no operation")
    }
  }

  private mutating func programs(for nodes: [ExpressionNode]) throws(ExpressionError) -> [Program] {
    var programs: [Program] = []
    for node in nodes { programs.append(try program(for: node)) }
    return programs
  }

  private func fieldIndex(_ node: ExpressionNode) -> Int {
    if case .field(let index)? = names.meanings[node.id] { index } else { -1 }
  }

  private mutating func reference(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    switch names.meanings[node.id] {
    case .variable(let name, let index): return Programs.variable(name, index)
    case .local(let number):
      localCount = max(localCount, number + 1)
      return Programs.local(number)
    case .type(let name): return Programs.literal(.type(name))
    case .nothing(let message): return Programs.failure(message)
    case .field, .function, .binds, nil: break
    }
    guard case .select(let operand, let field) = node.kind else { return Programs.failure("undeclared reference") }
    return Programs.select(try program(for: operand), field, fieldIndex(node))
  }

  /// A list or a map. A list of constants is made once.
  private mutating func literal(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    let programs = try programs(for: node.kind.children)
    guard case .list(let elements) = node.kind else {
      return Programs.map(stride(from: 0, to: programs.count, by: 2).map { (programs[$0], programs[$0 + 1]) })
    }
    var constants: [ExpressionValue] = []
    for element in elements {
      guard case .literal(let value) = element.kind else { return Programs.list(programs) }
      constants.append(value)
    }
    return Programs.literal(.list(constants))
  }

  private mutating func call(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    let operands = operands(node)
    return try made(node, operands, programs(for: operands))
  }

  /// Returns the receiver and the arguments of a call. The name in front of `strings.quote` is not a receiver.
  private func operands(_ node: ExpressionNode) -> [ExpressionNode] {
    guard case .call(let name, _, let arguments) = node.kind else { return [] }
    guard case .function(let function)? = names.meanings[node.id] else { return [] }
    return function.name == name ? node.kind.children : arguments
  }

  private func made(
    _ node: ExpressionNode, _ operands: [ExpressionNode], _ programs: [Program]
  ) throws(ExpressionError) -> Program {
    guard case .function(let function)? = names.meanings[node.id] else {
      if case .nothing(let message)? = names.meanings[node.id] { return Programs.failure(message) }
      return Programs.failure("undeclared function")
    }
    if function.name == "matches", case .literal(.string(let pattern)) = operands[1].kind {
      return Programs.match(programs[0], try regex(pattern, operands[1].offset))
    }
    if function.name == "sum" {
      return Programs.sum(programs[0], emptyValue: AggregateFunctions.emptySum(of: names.types[operands[0].id]))
    }
    return Programs.call(function, programs)
  }

  private func regex(_ pattern: String, _ offset: Int) throws(ExpressionError) -> RegexProgram {
    do throws(RegexError) {
      return try RegexProgram(pattern)
    } catch {
      throw ExpressionError(error.message, at: offset, in: source.text)
    }
  }

  private mutating func comprehension(_ node: ExpressionNode) throws(ExpressionError) -> Program {
    let programs = try programs(for: node.kind.children)
    guard case .binds(let number)? = names.meanings[node.id], case .comprehension(let macro) = node.kind else {
      return Programs.failure("unbound variable")
    }
    localCount = max(localCount, number + 1)
    let range = Programs.Range(macro: macro.function, operand: programs[0], variable: number)
    switch macro.function {
    case .all: return Programs.quantifier(range, programs[1], decisive: false)
    case .exists: return Programs.quantifier(range, programs[1], decisive: true)
    case .existsOne: return Programs.uniqueness(range, programs[1])
    case .filter: return Programs.transform(range, where: programs[1], nil)
    case .map:
      return Programs.transform(range, where: macro.predicate == nil ? nil : programs[1], programs[programs.count - 1])
    }
  }
}

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

  /// A name without a meaning, in an expression whose faults are left to evaluation.
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

  /// `sum` of a list with a known element type, which decides the value for an empty list.
  static func sum(_ operand: @escaping Program, emptyValue: ExpressionValue) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      return try AggregateFunctions.sum(operand(&frame), emptyValue: emptyValue, &frame.budget)
    }
  }

  /// Returns the values of operands, in order.
  private static func values(
    _ operands: [Program], _ frame: inout EvaluationFrame
  ) throws(EvaluationError) -> [ExpressionValue] {
    var values: [ExpressionValue] = []
    values.reserveCapacity(operands.count)
    for operand in operands { values.append(try operand(&frame)) }
    return values
  }

  // MARK: Access

  /// `operand.name`; `index` is the number of an object's key, or -1.
  static func select(_ operand: @escaping Program, _ name: String, _ index: Int) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      switch try operand(&frame) {
      case .object(let object): return try object.field(named: name, index: index, budget: &frame.budget)
      case .map(let map):
        try frame.budget.spend(bytes: name.utf8.count)
        guard let value = map[ExpressionMapKey(name)] else { throw .noSuchKey(name) }
        return value
      case let other: throw EvaluationError(.noSuchKey, "\(other.typeName) has no key '\(name)'")
      }
    }
  }

  /// `has(operand.name)`.
  static func presence(_ operand: @escaping Program, _ name: String, _ index: Int) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      switch try operand(&frame) {
      case .object(let object): return .bool(try object.hasField(named: name, index: index, budget: &frame.budget))
      case .map(let map):
        try frame.budget.spend(bytes: name.utf8.count)
        return .bool(map[ExpressionMapKey(name)] != nil)
      case let other: throw EvaluationError(.noSuchKey, "\(other.typeName) has no key '\(name)'")
      }
    }
  }

  /// `operand[index]`.
  static func index(_ operand: @escaping Program, _ index: @escaping Program) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let container = try operand(&frame)
      return try element(container, index(&frame), &frame.budget)
    }
  }

  private static func element(
    _ container: ExpressionValue, _ index: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    if case .map(let map) = container {
      if case .string(let text) = index { try budget.spend(bytes: text.utf8.count) }
      guard let key = ExpressionMapKey(index), let value = map[key] else { throw .noSuchKey(index.debugText) }
      return value
    }
    guard let list = container.asList else { throw .noOverload("[]", container, index) }
    let place: Int?
    switch index {
    case .int(let number): place = Int(exactly: number)
    case .uint(let number): place = Int(exactly: number)
    case .double(let number): place = Int(exactly: number)
    default: throw .noOverload("[]", container, index)
    }
    guard let place, place >= 0, place < list.count else {
      throw .invalid("index \(index.debugText) is out of range in a list of length \(list.count)")
    }
    return try list.element(at: place)
  }

  /// `[a, b]`.
  static func list(_ elements: [Program]) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend(1 + elements.count)
      return .list(try values(elements, &frame))
    }
  }

  /// `{a: b}`.
  static func map(_ entries: [(key: Program, value: Program)]) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend(1 + entries.count)
      var values: [(key: ExpressionValue, value: ExpressionValue)] = []
      values.reserveCapacity(entries.count)
      for entry in entries {
        let key = try entry.key(&frame)
        if case .string(let text) = key { try frame.budget.spend(bytes: text.utf8.count) }
        values.append((key, try entry.value(&frame)))
      }
      return .map(try ExpressionMap(values))
    }
  }

  // MARK: Operators

  /// `!operand` or `-operand`.
  static func unary(_ sign: UnaryOperator, _ operand: @escaping Program) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let value = try operand(&frame)
      switch (sign, value) {
      case (.not, .bool(let flag)): return .bool(!flag)
      case (.negate, .double(let number)): return .double(-number)
      case (.negate, .duration(let duration)): return .duration(try duration.negated())
      case (.negate, .int(let number)):
        guard number != .min else { throw .overflow("int") }
        return .int(-number)
      default: throw EvaluationError(.noSuchOverload, "no such overload: \(sign.rawValue)\(value.typeName)")
      }
    }
  }

  /// `left sign right`.
  static func binary(_ sign: BinaryOperator, _ left: @escaping Program, _ right: @escaping Program) -> Program {
    switch sign {
    case .add, .subtract, .multiply, .divide, .modulo: arithmetic(sign, left, right)
    case .equal, .notEqual: equality(left, right, isNegated: sign == .notEqual)
    case .less, .lessOrEqual, .greater, .greaterOrEqual: order(sign, left, right)
    case .contained: containment(left, right)
    }
  }

  private static func arithmetic(
    _ sign: BinaryOperator, _ left: @escaping Program, _ right: @escaping Program
  ) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      switch (try left(&frame), try right(&frame)) {
      case (.double(let left), .double(let right)): return .double(try Arithmetic.doubles(sign, left, right))
      case (.int(let left), .int(let right)): return .int(try Arithmetic.integers(sign, left, right, "int"))
      case (.uint(let left), .uint(let right)): return .uint(try Arithmetic.integers(sign, left, right, "uint"))
      case (let left, let right): return try Arithmetic.others(sign, left, right, &frame.budget)
      }
    }
  }

  private static func equality(
    _ left: @escaping Program, _ right: @escaping Program, isNegated: Bool
  ) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let left = try left(&frame)
      let right = try right(&frame)
      return .bool(try left.isEqual(to: right, &frame.budget) != isNegated)
    }
  }

  private static func order(
    _ sign: BinaryOperator, _ left: @escaping Program, _ right: @escaping Program
  ) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let left = try left(&frame)
      let right = try right(&frame)
      guard let order = try left.order(to: right, sign.rawValue, &frame.budget) else { return .bool(false) }
      switch sign {
      case .less: return .bool(order < 0)
      case .lessOrEqual: return .bool(order <= 0)
      case .greater: return .bool(order > 0)
      default: return .bool(order >= 0)
      }
    }
  }

  /// `element in container`.
  private static func containment(_ element: @escaping Program, _ container: @escaping Program) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      let element = try element(&frame)
      let container = try container(&frame)
      return .bool(try contains(container, element, &frame.budget))
    }
  }

  private static func contains(
    _ container: ExpressionValue, _ element: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Bool {
    if case .map(let map) = container {
      if case .string(let text) = element { try budget.spend(bytes: text.utf8.count) }
      return ExpressionMapKey(element).map { map[$0] != nil } ?? false
    }
    guard let list = container.asList else { throw .noOverload("in", element, container) }
    if case .sequence(let sequence) = list, let known = isMember(element, of: sequence) {
      return known
    }
    for index in 0..<list.count {
      try budget.spend()
      if try element.isEqual(to: list.element(at: index), &budget) { return true }
    }
    return false
  }

  private static func isMember(_ element: ExpressionValue, of sequence: any ExpressionSequence) -> Bool? {
    switch element {
    case .object(let object): sequence.contains(identity: object.identity)
    case .string(let text): sequence.contains(identity: text)
    default: nil
    }
  }

  /// Operands joined by `&&`, of which false is decisive, or by `||`, of which true is. A decisive operand hides errors
  /// of the others, whatever their order (CEL language definition, Logical Operators).
  static func logical(_ operands: [Program], decisive: Bool) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      var absorbed = AbsorbedError()
      for operand in operands {
        if try absorbed.decides(operand, decisive, &frame) { return .bool(decisive) }
      }
      try absorbed.rethrow()
      return .bool(!decisive)
    }
  }

  /// `condition ? first : second`: only one of both is evaluated.
  static func conditional(
    _ condition: @escaping Program, _ first: @escaping Program, _ second: @escaping Program
  ) -> Program {
    { (frame) throws(EvaluationError) in
      try frame.budget.spend()
      return try condition(&frame).flag() ? first(&frame) : second(&frame)
    }
  }

  // MARK: Macros

  /// The range of a macro, and the number of its variable.
  struct Range: Sendable {
    let macro: Comprehension.Function
    let operand: Program
    let variable: Int

    /// Returns the elements: those of a list, or the keys of a map. Throws if the range is neither.
    fileprivate func elements(_ frame: inout EvaluationFrame) throws(EvaluationError) -> ExpressionList {
      try frame.budget.spend()
      let range = try operand(&frame)
      if case .map(let map) = range { return .elements(map.keys) }
      guard let list = range.asList else { throw .noOverload(function: macro.rawValue, [range]) }
      return list
    }

    /// Binds the variable to the element at `index`.
    @inline(__always)
    fileprivate func bind(
      _ elements: ExpressionList, _ index: Int, _ frame: inout EvaluationFrame
    ) throws(EvaluationError) {
      try frame.budget.spend()
      frame.locals[variable] = try elements.element(at: index)
    }
  }

  /// `all`, of which false is decisive, or `exists`, of which true is. A decisive element hides errors of the others
  /// (CEL language definition, Macros).
  static func quantifier(_ range: Range, _ predicate: @escaping Program, decisive: Bool) -> Program {
    { (frame) throws(EvaluationError) in
      let elements = try range.elements(&frame)
      var absorbed = AbsorbedError()
      for index in 0..<elements.count {
        try range.bind(elements, index, &frame)
        if try absorbed.decides(predicate, decisive, &frame) { return .bool(decisive) }
      }
      try absorbed.rethrow()
      return .bool(!decisive)
    }
  }

  /// `exists_one`: an error of any element is the error of the macro.
  static func uniqueness(_ range: Range, _ predicate: @escaping Program) -> Program {
    { (frame) throws(EvaluationError) in
      let elements = try range.elements(&frame)
      var count = 0
      for index in 0..<elements.count {
        try range.bind(elements, index, &frame)
        if try predicate(&frame).flag() { count += 1 }
      }
      return .bool(count == 1)
    }
  }

  /// `map` or `filter`: the results of `transform`, or the elements themselves, for the elements that meet `predicate`,
  /// or for all.
  static func transform(_ range: Range, where predicate: Program?, _ transform: Program?) -> Program {
    { (frame) throws(EvaluationError) in
      let elements = try range.elements(&frame)
      var results: [ExpressionValue] = []
      for index in 0..<elements.count {
        try range.bind(elements, index, &frame)
        if let predicate, try !predicate(&frame).flag() { continue }
        results.append(try transform?(&frame) ?? frame.locals[range.variable])
      }
      return .list(results)
    }
  }
}

/// The state of one evaluation.
struct EvaluationFrame {
  let activation: any ExpressionActivation
  var budget: EvaluationBudget
  /// The values of comprehension variables by their numbers.
  var locals: [ExpressionValue]

  init(_ activation: any ExpressionActivation, _ budget: EvaluationBudget, localCount: Int) {
    self.activation = activation
    self.budget = budget
    locals = localCount == 0 ? [] : Array(repeating: .null, count: localCount)
  }
}

/// The first error of operands, of which another one may still decide.
private struct AbsorbedError {
  private var error: EvaluationError?

  /// Returns true if the value of `operand` is `decisive`. An error is stored, and so is a value that is not a bool; an
  /// error that ends the evaluation is thrown.
  mutating func decides(
    _ operand: Program, _ decisive: Bool, _ frame: inout EvaluationFrame
  ) throws(EvaluationError) -> Bool {
    do throws(EvaluationError) {
      return try operand(&frame).flag() == decisive
    } catch {
      if error.isLimit { throw error }
      if self.error == nil { self.error = error }
      return false
    }
  }

  /// Throws the stored error, if there is any.
  func rethrow() throws(EvaluationError) {
    if let error { throw error }
  }
}

extension ExpressionValue {
  /// Returns the value of a condition. Throws if it is not a bool.
  fileprivate func flag() throws(EvaluationError) -> Bool {
    guard case .bool(let flag) = self else { throw .notBool(self) }
    return flag
  }
}

/// The operators of numbers, times, and values that can be concatenated (CEL language definition, Numeric Values,
/// Overflow).
private enum Arithmetic {
  @inline(__always)
  static func doubles(_ sign: BinaryOperator, _ left: Double, _ right: Double) throws(EvaluationError) -> Double {
    switch sign {
    case .add: return left + right
    case .subtract: return left - right
    case .multiply: return left * right
    case .divide: return left / right
    default: throw .noOverload(sign.rawValue, .double(left), .double(right))
    }
  }

  @inline(__always)
  static func integers<Number: FixedWidthInteger>(
    _ sign: BinaryOperator, _ left: Number, _ right: Number, _ type: String
  ) throws(EvaluationError) -> Number {
    let result: (partialValue: Number, overflow: Bool)
    switch sign {
    case .add: result = left.addingReportingOverflow(right)
    case .subtract: result = left.subtractingReportingOverflow(right)
    case .multiply: result = left.multipliedReportingOverflow(by: right)
    case .divide, .modulo:
      guard right != 0 else { throw EvaluationError(.divisionByZero, "division of \(left) by zero") }
      result =
        sign == .divide ? left.dividedReportingOverflow(by: right) : left.remainderReportingOverflow(dividingBy: right)
    default: throw EvaluationError(.noSuchOverload, "no such overload: \(type) \(sign.rawValue) \(type)")
    }
    guard !result.overflow else { throw .overflow(type) }
    return result.partialValue
  }

  /// `+` and `-` of values that are not numbers. Concatenation costs the size of the result.
  static func others(
    _ sign: BinaryOperator, _ left: ExpressionValue, _ right: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    switch (sign, left, right) {
    case (.add, .string(let left), .string(let right)):
      try budget.spend(bytes: left.utf8.count + right.utf8.count)
      return .string(left + right)
    case (.add, .bytes(let left), .bytes(let right)):
      try budget.spend(bytes: left.count + right.count)
      return .bytes(left + right)
    case (.add, .timestamp(let time), .duration(let span)), (.add, .duration(let span), .timestamp(let time)):
      return .timestamp(try time.adding(span))
    case (.add, .duration(let left), .duration(let right)): return .duration(try left.adding(right))
    case (.subtract, .timestamp(let time), .duration(let span)): return .timestamp(try time.subtracting(span))
    case (.subtract, .timestamp(let left), .timestamp(let right)): return .duration(try left.since(right))
    case (.subtract, .duration(let left), .duration(let right)): return .duration(try left.subtracting(right))
    default:
      guard sign == .add, let left = left.asList, let right = right.asList else {
        throw .noOverload(sign.rawValue, left, right)
      }
      return .list(try left.materialised(&budget) + right.materialised(&budget))
    }
  }
}
