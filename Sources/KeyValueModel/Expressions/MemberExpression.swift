import CEL

/// What a collection function makes of one member: its filters, and its transform. Two are the same only if they are
/// one.
final class MemberExpression: Hashable, Sendable {
  /// How the members' values become one.
  let function: CollectionFold.Function
  private let source: CollectionFunction
  private let limits: ExpressionLimits

  init(_ source: CollectionFunction, limits: ExpressionLimits) {
    self.source = source
    self.limits = limits
    function =
      switch source.function {
      case .sum: .sum
      case .avg: .average
      case .min: .minimum
      case .max: .maximum
      case .size: .count
      case .all: .all
      case .exists: .exists
      case .existsOne: .existsOne
      }
  }

  /// Whether the function's values are ones that a fold can hold: numbers, strings and booleans whose type is known.
  static func canFold(_ function: CollectionFunction) -> Bool {
    switch function.function {
    case .size, .all, .exists, .existsOne: return true
    case .sum, .avg: return function.elementType == .int || function.elementType == .double
    case .min, .max:
      return function.elementType == .int || function.elementType == .double || function.elementType == .string
    }
  }

  static func == (left: MemberExpression, right: MemberExpression) -> Bool { left === right }

  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

  /// What a member adds. Its cost is its own: a member costs the same whatever the others do.
  func contribution(
    of member: Value, in reader: any ObjectReader, latest: inout LatestRevision
  ) -> RunningFold.Contribution {
    let pass = EvaluationPass(reader: reader)
    defer { latest.note(pass.latest.revision) }
    var budget = EvaluationBudget(limits)
    return contribution(of: member, pass, budget: &budget)
  }

  /// What a member adds, its cost taken from the budget of the whole.
  func contribution(
    of member: Value, _ pass: EvaluationPass, budget: inout EvaluationBudget
  ) -> RunningFold.Contribution {
    switch source.contribution(of: pass.expressionValue(ofMember: member), budget: &budget) {
    case .failure(let error): return .failure(error.message)
    case .success(nil): return .none
    case .success(let value?):
      if function == .count { return .value(.bool(true)) }
      guard let value = Value(value, as: nil) else { return .failure("a value is no number that JSON has") }
      return .value(value)
    }
  }
}

extension CollectionFunction {
  /// The type of what an element contributes.
  var elementType: ExpressionType { transform?.type ?? .dyn }
}
