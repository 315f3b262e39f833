import CEL

/// A condition in CEL that decides whether an identity may perform an action on objects of an entity (the
/// specification, section 11).
///
/// The condition can use the object's keys, `this` and `identity`, and for an update also `before`. A rule reads the
/// whole state, whatever the identity may read.
package final class AccessRule: Sendable {
  /// The variables that a rule can use.
  enum Scope: Sendable {
    /// The object and the identity.
    case object
    /// The object, the object before the change, and the identity.
    case change
    /// The identity alone.
    case identity
  }

  /// The variable that holds the identity.
  fileprivate static let identityName = "identity"
  /// The variable that holds the object before a change.
  fileprivate static let beforeName = "before"
  /// The names that a key must not have.
  static let reservedNames: Set<String> = [identityName, beforeName]
  private static let indexOfIdentity = Int.max - 1
  private static let indexOfBefore = Int.max - 2

  /// The text as written in the schema.
  let text: String
  /// The keys that the rule reads, from the object on.
  package let reads: KeyTree
  /// The claims of the identity that the rule reads.
  let identityReads: IdentityReads
  private let expression: CheckedExpression
  private let limits = ExpressionLimits()

  /// Compiles `text` for objects of `entity`. Throws if it is not a valid expression over the variables of `scope`, or
  /// not a condition.
  init(
    _ text: String, of entity: Entity, in schema: Schema, seeing scope: Scope
  ) throws(KeyExpression.Mistake) {
    let environment = Environment(schema: SchemaEnvironment(schema: schema, entity: entity), scope: scope)
    do throws(ExpressionError) {
      expression = try Expression(parsing: text, limits: limits).checked(in: environment)
    } catch {
      throw KeyExpression.Mistake(line: error.line, column: error.column, message: error.message)
    }
    guard expression.type == .bool || expression.type == .dyn else {
      throw KeyExpression.Mistake(
        line: 1, column: 1, message: "a rule must be true or false, not \(ValueType(expression.type).article)")
    }
    self.text = text
    reads = KeyTree(expression.reads, of: entity, in: schema)
    identityReads = IdentityReads(of: expression.root)
  }

  /// The syntax tree.
  private var root: ExpressionNode { expression.root }

  /// The variables of a rule, with their types.
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

  /// Provides the values of a rule's variables.
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

  /// Returns true if the rule holds for an identity and for an object in the state of `reader`. A rule that fails, or
  /// whose value is not true, does not hold. `before` is the object before the transaction, for rules that use it.
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

  /// The value of a part of the rule that uses the identity alone; false if its evaluation fails, nil if the part
  /// cannot be evaluated by itself.
  private func value(of part: ExpressionNode, for identity: ExpressionValue) -> ExpressionValue? {
    guard let expression = expression.part(part) else { return nil }
    var budget = EvaluationBudget(limits)
    guard case .success(let value) = expression.evaluate(Activation(identity, nil, nil), budget: &budget) else {
      return .bool(false)
    }
    return value
  }

  /// Returns true if a rule that uses the identity alone holds for `identity`.
  func holds(for identity: ExpressionValue) -> Bool {
    var budget = EvaluationBudget(limits)
    if case .success(.bool(true)) = expression.evaluate(Activation(identity, nil, nil), budget: &budget) { return true }
    return false
  }

  // MARK: Without an object

  /// The stored keys that the rule requires to equal certain values, with these values: it is false for every object
  /// with another value, as `owner == identity.sub` is. The comparison may stand by itself, be joined to other
  /// conditions by `&&`, or be joined by `||` to conditions that this identity does not meet.
  func equalities(of entity: Entity, for identity: ExpressionValue) -> [(key: Int, value: Value)] {
    KeyExpression.equalities(in: root, entity) { node in
      KeyExpression.constant(node) ?? self.constant(node, for: identity)
    }
  }

  /// The rule's outcome for an identity if it is the same for every object; nil if it depends on the object.
  ///
  /// If one side of `&&` or `||` decides the outcome, the other side does not matter, even if it fails (CEL language
  /// definition, Logical Operators): for a teller, `"teller" in identity.roles || owner == identity.sub` is evaluated
  /// for no object.
  func outcome(for identity: ExpressionValue) -> Bool? { outcome(of: root, for: identity) }

  private func outcome(of node: ExpressionNode, for identity: ExpressionValue) -> Bool? {
    if let value = constant(node, for: identity) {
      if case .bool(true) = value { return true }
      return false
    }
    switch node.kind {
    case .all(let operands):
      let outcomes = operands.map { outcome(of: $0, for: identity) }
      return outcomes.contains(false) ? false : outcomes.contains(nil) ? nil : true
    case .any(let operands):
      let outcomes = operands.map { outcome(of: $0, for: identity) }
      return outcomes.contains(true) ? true : outcomes.contains(nil) ? nil : false
    default: return nil
    }
  }

  /// The value of a part that uses the identity alone, nil for any other part. False if its evaluation fails, since the
  /// rule then fails or holds by another of its parts.
  private func constant(_ node: ExpressionNode, for identity: ExpressionValue) -> ExpressionValue? {
    guard Self.seesIdentityAlone(node) else { return nil }
    return value(of: node, for: identity)
  }

  private static func seesIdentityAlone(_ node: ExpressionNode) -> Bool {
    switch node.kind {
    case .identifier: node.isIdentity
    // A comprehension declares a variable, which may have any name.
    case .comprehension, .collectionFunction: false
    default: node.kind.children.allSatisfy(seesIdentityAlone)
    }
  }
}

/// The rules for the objects of one entity, including the rules inherited from its parents and from the schema where it
/// has none of its own.
package struct AccessRules: Sendable {
  /// An action that a rule can permit.
  package enum Action: String, Hashable, Sendable, CaseIterable {
    case read, create, update, delete

    /// The variables that a rule for the action can use.
    var scope: AccessRule.Scope { self == .update ? .change : .object }
  }

  /// The rules of one key.
  struct KeyRules: Sendable {
    var read: AccessRule?
    var update: AccessRule?
    /// The rule evaluated in place of the object's and the key's `update` rules when a write changes the key through
    /// its inverse.
    var inverse: AccessRule?
  }

  /// The rule of each action that has one.
  var actions: [Action: AccessRule] = [:]
  /// The rules of keys, by the indexes of the keys.
  var keys: [Int: KeyRules] = [:]

  /// Creates an empty set of rules.
  package init() {}

  /// The keys that the read rule reads: a change of one of them may make an object readable or unreadable.
  package var reads: KeyTree { actions[.read]?.reads ?? KeyTree() }

  /// The claims of the identity that the read rules of the entity and of its keys use.
  var identityReads: IdentityReads {
    var reads = actions[.read]?.identityReads ?? IdentityReads()
    for rules in keys.values { rules.read.map { reads.merge($0.identityReads) } }
    return reads
  }
}

/// The claims of an identity that rules read: identities that agree in these claims have the same permissions.
struct IdentityReads: Hashable, Sendable {
  /// The claims that are read by name.
  private(set) var claims: Set<String> = []
  /// True if all claims are read, for example because a function takes the whole identity.
  private(set) var readsAll = false

  init() {}

  /// Creates the claims that an expression reads. The presence of an identity is not among them: it is known in any
  /// case.
  init(of root: ExpressionNode) { collect(root) }

  mutating func merge(_ other: IdentityReads) {
    claims.formUnion(other.claims)
    readsAll = readsAll || other.readsAll
  }

  /// The members of `claims` that are read.
  func used(of claims: JSONObject) -> JSONObject {
    if readsAll { return claims }
    var used = JSONObject()
    for name in self.claims.sorted() {
      if let value = claims[name] { used[name] = value }
    }
    return used
  }

  private mutating func collect(_ node: ExpressionNode) {
    switch node.kind {
    case .identifier(AccessRule.identityName, _): readsAll = true
    case .select(let operand, let field) where operand.isIdentity: claims.insert(field)
    case .has(let operand, let field) where operand.isIdentity: claims.insert(field)
    case .index(let operand, let index) where operand.isIdentity && index.text != nil:
      index.text.map { _ = claims.insert($0) }
    case .binary(.equal, let left, let right), .binary(.notEqual, let left, let right):
      // Comparing the identity with null reads no claim: its presence is known.
      if left.isIdentity, right.isNull { return }
      if right.isIdentity, left.isNull { return }
      collect(left)
      collect(right)
    default: node.kind.children.forEach { collect($0) }
    }
  }
}

extension ExpressionNode {
  /// True if the node is the variable that holds the identity.
  fileprivate var isIdentity: Bool {
    if case .identifier(AccessRule.identityName, _) = kind { true } else { false }
  }

  fileprivate var isNull: Bool {
    if case .literal(.null) = kind { true } else { false }
  }

  fileprivate var text: String? {
    if case .literal(.string(let text)) = kind { text } else { nil }
  }
}
