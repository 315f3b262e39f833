import CEL

/// A condition in CEL that says whether an identity may do something with objects of an entity (the specification,
/// section 11).
///
/// It sees the object's keys, `this` and `identity`, and `before` where something is changed. A rule reads
/// everything that there is, whatever the identity may read.
package final class AccessRule: Sendable {
  /// What a rule sees.
  enum Scope: Sendable {
    /// The object and who asks.
    case object
    /// The object, what it was before, and who asks.
    case change
    /// Who asks, alone.
    case identity
  }

  /// The name of who asks.
  static let identityName = "identity"
  /// The name of the object before a change.
  static let beforeName = "before"
  /// The names that keys may not have.
  static let reservedNames: Set<String> = [identityName, beforeName]
  private static let indexOfIdentity = Int.max - 1
  private static let indexOfBefore = Int.max - 2

  /// The text as it was written.
  let text: String
  /// What it reads of the object.
  package let reads: KeyTree
  /// What it reads of who asks.
  let identityReads: IdentityReads
  private let expression: CheckedExpression
  private let limits: ExpressionLimits

  /// Compiles `text` for objects of `entity`. Throws where it is no expression over what it sees, or no condition.
  init(
    _ text: String, of entity: Entity, in schema: Schema, seeing scope: Scope,
    limits: ExpressionLimits = ExpressionLimits()
  ) throws(KeyExpression.Mistake) {
    let environment = Environment(schema: SchemaEnvironment(schema: schema, entity: entity), scope: scope)
    do throws(ExpressionError) {
      expression = try Expression(parsing: text, limits: limits).checked(in: environment)
    } catch {
      throw KeyExpression.Mistake(line: error.line, column: error.column, message: error.message)
    }
    guard expression.type == .bool || expression.type == .dyn else {
      throw KeyExpression.Mistake(
        line: 1, column: 1, message: "a rule is true or false, and this is \(ValueType(expression.type).article)")
    }
    self.text = text
    self.limits = limits
    reads = KeyTree(expression.reads, of: entity, in: schema)
    identityReads = IdentityReads(of: expression.root)
  }

  /// The syntax tree.
  var root: ExpressionNode { expression.root }

  /// The names of a rule.
  private struct Environment: ExpressionEnvironment {
    let schema: SchemaEnvironment
    let scope: Scope

    func type(ofVariable name: String) -> ExpressionType? {
      switch name {
      case AccessRule.identityName: .dyn
      case AccessRule.beforeName: scope == .change ? .object(schema.entity.name) : nil
      default: scope == .identity ? nil : schema.type(ofVariable: name)
      }
    }

    func index(ofVariable name: String) -> Int? {
      switch name {
      case AccessRule.identityName: AccessRule.indexOfIdentity
      case AccessRule.beforeName: AccessRule.indexOfBefore
      default: schema.index(ofVariable: name)
      }
    }

    func type(ofField name: String, inObject object: String) -> ExpressionType? {
      schema.type(ofField: name, inObject: object)
    }

    func index(ofField name: String, inObject object: String) -> Int? {
      schema.index(ofField: name, inObject: object)
    }

    var refusesBadTimestamps: Bool { schema.refusesBadTimestamps }

    var variableNames: [String] {
      [AccessRule.identityName] + (scope == .change ? [AccessRule.beforeName] : [])
        + (scope == .identity ? [] : schema.variableNames)
    }

    func fieldNames(inObject object: String) -> [String] { schema.fieldNames(inObject: object) }

    func mistake(comparing operand: ComparedValue, with literal: ExpressionValue, isEquality: Bool) -> String? {
      if case .variable(AccessRule.identityName) = operand { return nil }
      return schema.mistake(comparing: operand, with: literal, isEquality: isEquality)
    }
  }

  // MARK: Evaluating

  /// Gives a rule what it sees.
  private final class Activation: ExpressionActivation {
    private let identity: ExpressionValue
    private let object: ModelObject?
    private let before: ModelObject?

    init(_ identity: ExpressionValue, _ object: ModelObject?, _ before: ModelObject?) {
      (self.identity, self.object, self.before) = (identity, object, before)
    }

    func value(
      ofVariable name: String, index: Int, budget: inout EvaluationBudget
    ) throws(EvaluationError) -> ExpressionValue {
      switch index {
      case AccessRule.indexOfIdentity: return identity
      case AccessRule.indexOfBefore: return before.map(ExpressionValue.object) ?? .null
      case SchemaEnvironment.indexOfThis: return object.map(ExpressionValue.object) ?? .null
      default:
        guard let object else { return .null }
        return try object.field(named: name, index: index, budget: &budget)
      }
    }
  }

  /// Whether the rule lets an identity do something with an object as `reader` has it. An error, and what is not true,
  /// is no. `before` is the object before the transaction, where the rule sees that.
  func holds(
    for identity: ExpressionValue, _ reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader,
    before: (record: ObjectRecord, reader: any ObjectReader)? = nil
  ) -> Bool {
    let object = ModelObject(reference, record, EvaluationPass(reader: reader))
    let former = before.map { ModelObject(reference, $0.record, EvaluationPass(reader: $0.reader)) }
    let work = reader.work
    var budget = work?.budget(within: limits) ?? EvaluationBudget(limits)
    let granted = budget.remainingCost
    let result = expression.evaluate(Activation(identity, object, former), budget: &budget)
    work?.settle(budget, granted: granted, within: limits)
    if case .success(.bool(true)) = result { return true }
    return false
  }

  /// The value of a part of the rule that sees nothing but who asks; false where it fails.
  func value(of part: ExpressionNode, for identity: ExpressionValue) -> ExpressionValue? {
    guard let expression = expression.part(part) else { return nil }
    var budget = EvaluationBudget(limits)
    guard case .success(let value) = expression.evaluate(Activation(identity, nil, nil), budget: &budget) else {
      return .bool(false)
    }
    return value
  }

  /// Whether a rule that sees nothing but who asks lets them.
  func holds(for identity: ExpressionValue) -> Bool {
    var budget = EvaluationBudget(limits)
    if case .success(.bool(true)) = expression.evaluate(Activation(identity, nil, nil), budget: &budget) { return true }
    return false
  }
}
