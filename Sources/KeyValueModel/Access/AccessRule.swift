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
  fileprivate static let identityName = "identity"
  /// The name of the object before a change.
  fileprivate static let beforeName = "before"
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
  private let limits = ExpressionLimits()

  /// Compiles `text` for objects of `entity`. Throws where it is no expression over what it sees, or no condition.
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
        line: 1, column: 1, message: "a rule is true or false, and this is \(ValueType(expression.type).article)")
    }
    self.text = text
    reads = KeyTree(expression.reads, of: entity, in: schema)
    identityReads = IdentityReads(of: expression.root)
  }

  /// The syntax tree.
  private var root: ExpressionNode { expression.root }

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
  private func value(of part: ExpressionNode, for identity: ExpressionValue) -> ExpressionValue? {
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

  // MARK: Without an object

  /// The stored keys that the rule compares with what an identity is, in a way that makes it false for all other
  /// values: `owner == identity.sub`, by itself, joined to other conditions by `&&`, or to such as this identity does
  /// not meet by `||`.
  func equalities(of entity: Entity, for identity: ExpressionValue) -> [(key: Int, value: Value)] {
    KeyExpression.equalities(in: root, entity) { node in
      KeyExpression.constant(node) ?? self.constant(node, for: identity)
    }
  }

  /// What the rule comes to for an identity, whatever the object is; nil where that depends on the object.
  ///
  /// What one side of `&&` or `||` decides stands, whatever the other does, errors included (CEL language definition,
  /// Logical Operators): `"teller" in identity.roles || owner == identity.sub` is asked of no object for a teller.
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

  /// The value of a part that sees nothing but who asks; false where it has none, since the rule then fails or goes on
  /// without it.
  private func constant(_ node: ExpressionNode, for identity: ExpressionValue) -> ExpressionValue? {
    guard Self.seesIdentityAlone(node) else { return nil }
    return value(of: node, for: identity)
  }

  private static func seesIdentityAlone(_ node: ExpressionNode) -> Bool {
    switch node.kind {
    case .identifier: node.isIdentity
    // A variable of its own may have any name.
    case .comprehension, .collectionFunction: false
    default: node.kind.children.allSatisfy(seesIdentityAlone)
    }
  }
}

/// The rules for the objects of one entity, those of its parents and of the schema included where it has none itself.
package struct AccessRules: Sendable {
  /// What a rule may allow.
  package enum Action: String, Hashable, Sendable, CaseIterable {
    case read, create, update, delete

    /// What a rule for it sees.
    var scope: AccessRule.Scope { self == .update ? .change : .object }
  }

  /// The rules of one key.
  struct KeyRules: Sendable {
    var read: AccessRule?
    var update: AccessRule?
    /// Asked in place of `update`, of the object and of the key, when a write changes the key through its inverse.
    var inverse: AccessRule?
  }

  /// The rules that there are.
  var actions: [Action: AccessRule] = [:]
  /// The rules of keys, by their indexes.
  var keys: [Int: KeyRules] = [:]

  /// No rules.
  package init() {}

  /// What the read rule reads of an object, whose change may make it readable or not.
  package var reads: KeyTree { actions[.read]?.reads ?? KeyTree() }

  /// What reading asks of who asks.
  var identityReads: IdentityReads {
    var reads = actions[.read]?.identityReads ?? IdentityReads()
    for rules in keys.values { rules.read.map { reads.merge($0.identityReads) } }
    return reads
  }
}

/// What rules read of who asks: identities that have the same of it may do the same.
struct IdentityReads: Hashable, Sendable {
  /// The claims that are read by their names.
  private(set) var claims: Set<String> = []
  /// Whether all claims are read, as by a function of the whole identity.
  private(set) var readsAll = false

  init() {}

  /// What an expression reads. Whether there is an identity at all is never left out.
  init(of root: ExpressionNode) { collect(root) }

  mutating func merge(_ other: IdentityReads) {
    claims.formUnion(other.claims)
    readsAll = readsAll || other.readsAll
  }

  /// The claims that are read, of those that there are.
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
      // Whether there is one is known of each.
      if left.isIdentity, right.isNull { return }
      if right.isIdentity, left.isNull { return }
      collect(left)
      collect(right)
    default: node.kind.children.forEach { collect($0) }
    }
  }
}

extension ExpressionNode {
  /// Whether it is the name of who asks.
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
