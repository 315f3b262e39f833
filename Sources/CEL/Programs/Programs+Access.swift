extension Programs {
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
      throw .invalid("index \(index.debugText) is not in a list of \(list.count)")
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
}
