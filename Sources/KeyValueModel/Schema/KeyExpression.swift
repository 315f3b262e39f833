import CEL
import Synchronization

/// A CEL expression over the keys of an entity's objects: that of a computed key or of a filter (the specification,
/// section 8).
///
/// Collection functions that can be kept up to date member by member, such as `sum(employees.map(e, e.salary))`, are
/// extracted from it as folds, so that a reader that keeps folds evaluates it without visiting the members.
package final class KeyExpression: Sendable {
  /// A mistake in an expression, with its line and column in the text, both counted from 1.
  package struct Mistake: Error, Hashable, Sendable {
    package let line: Int
    package let column: Int
    package let message: String
  }

  /// The names that are words of the language and cannot be keys.
  static let reservedNames: Set<String> = ["this", "true", "false", "null", "in"]

  /// The type of its values.
  package let type: ValueType
  /// True if its values are unsigned integers, which can exceed the integers of 64 bits.
  let isUnsigned: Bool
  /// The keys that it reads, from the object on.
  package let reads: KeyTree
  /// True if it reads more than the object's own keys, in which case its value may be worth caching.
  var readsOtherObjects: Bool { reads.branches.contains { $0.fold != nil || !$0.behind.isEmpty } }
  private let expression: CheckedExpression
  private let folds: [FoldCall]
  private let limits = ExpressionLimits()
  private let failures = Atomic<Int>(0)

  /// An extracted collection function, with the path to its collection.
  private struct FoldCall: Sendable {
    let ownerKeys: [Int]
    let fold: CollectionFold
    let resultType: ExpressionType
  }

  /// Compiles `text` for objects of `entity`. Throws if it is not valid CEL, uses an unknown name, or applies a
  /// function to values that the function does not take.
  package init(_ text: String, of entity: Entity, in schema: Schema) throws(Mistake) {
    let environment = SchemaEnvironment(schema: schema, entity: entity)
    let whole: CheckedExpression
    do throws(ExpressionError) {
      whole = try Expression(parsing: text, limits: limits).checked(in: environment)
    } catch {
      throw Mistake(line: error.line, column: error.column, message: error.message)
    }
    type = ValueType(whole.type)
    isUnsigned = whole.type == .uint
    let (rest, functions) = whole.extractingCollectionFunctions()
    if !functions.isEmpty, let calls = Self.calls(functions, of: entity, in: schema) {
      expression = rest
      folds = calls.map(\.call)
      var reads = KeyTree(rest.reads, of: entity, in: schema)
      for call in calls { reads.merge(call.reads) }
      self.reads = reads
    } else {
      expression = whole
      folds = []
      reads = KeyTree(whole.reads, of: entity, in: schema)
    }
  }

  /// The functions as folds, with the keys that they read. Nil if one of them cannot be a fold: its values for the
  /// members have no known type, or its list is not a collection that an object holds.
  private static func calls(
    _ functions: [CollectionFunction], of entity: Entity, in schema: Schema
  ) -> [(call: FoldCall, reads: KeyTree)]? {
    var calls: [(call: FoldCall, reads: KeyTree)] = []
    for function in functions {
      let keys = schema.keys(along: function.path, from: entity)
      guard MemberExpression.canFold(function), let key = keys.last,
        let destination = schema.collectionMember(along: keys, from: entity)
      else { return nil }
      let member = MemberExpression(function)
      let fold = CollectionFold(member.function, ofKey: key, element: member)
      let behind = destination.map { KeyTree(function.elementReads, of: $0, in: schema) } ?? KeyTree()
      calls.append(
        (
          FoldCall(ownerKeys: keys.dropLast(), fold: fold, resultType: function.resultType),
          KeyTree(path: keys, fold: fold, behind: behind)
        ))
    }
    return calls
  }

  /// The number of failed evaluations. A failed computed key is null, and this count is the only sign of the failure.
  package var failureCount: Int { failures.load(ordering: .relaxed) }

  /// Counts a failed evaluation.
  func noteFailure() { failures.add(1, ordering: .relaxed) }

  /// The syntax tree, without the extracted folds.
  var root: ExpressionNode { expression.root }

  // MARK: Evaluating

  /// Returns the value for an object, or null if the evaluation fails. Raises `latest` to the latest revision of the
  /// objects read.
  func value(
    of reference: Reference, _ record: ObjectRecord, as declared: AttributeType?, in reader: any ObjectReader,
    latest: inout LatestRevision
  ) -> Value {
    let pass = EvaluationPass(reader: reader)
    defer { latest.note(pass.latest.revision) }
    let work = reader.work
    var budget = work?.budget(within: limits) ?? EvaluationBudget(limits)
    let granted = budget.remainingCost
    let outcome = pass.result(of: self, reference, record, budget: &budget)
    work?.settle(budget, granted: granted, within: limits)
    guard case .success(let value) = outcome, let result = Value(value, as: declared) else {
      pass.noteFailure(of: self)
      return .null
    }
    return result
  }

  /// Evaluates the expression for an object within a pass in progress. The cost is taken from the budget of the whole
  /// evaluation.
  func evaluate(
    _ reference: Reference, _ record: ObjectRecord, _ pass: EvaluationPass, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue, EvaluationError> {
    expression.evaluate(Activation(self, reference, record, pass), budget: &budget)
  }

  /// Provides the values of the object's keys to the expression.
  private final class Activation: ExpressionActivation {
    private let owner: KeyExpression
    private let object: ModelObject
    private let pass: EvaluationPass

    init(_ owner: KeyExpression, _ reference: Reference, _ record: ObjectRecord, _ pass: EvaluationPass) {
      self.owner = owner
      self.pass = pass
      object = ModelObject(reference, record, pass)
    }

    func value(
      ofVariable name: String, index: Int, budget: inout EvaluationBudget
    ) throws(EvaluationError) -> ExpressionValue {
      if index == SchemaEnvironment.indexOfThis { return .object(object) }
      return try object.field(named: name, index: index, budget: &budget)
    }

    func value(
      ofCollectionFunction index: Int, budget: inout EvaluationBudget
    ) throws(EvaluationError) -> ExpressionValue {
      let call = owner.folds[index]
      guard let holder = pass.object(behind: call.ownerKeys, from: object.reference) else {
        throw EvaluationError(.noSuchKey, "the path to the collection leads through a null")
      }
      switch try pass.value(of: call.fold, holder, budget: &budget) {
      case .failure(let message): throw EvaluationError(.unavailable, message)
      case .value(let value): return ExpressionValue(folded: value, as: call.resultType)
      }
    }
  }
}

/// The expression that a collection function evaluates for each member: its filters and its transform. Two are equal
/// only if they are the same instance.
final class MemberExpression: Hashable, Sendable {
  /// The function that combines the members' values.
  let function: CollectionFold.Function
  private let source: CollectionFunction
  private let limits = ExpressionLimits()

  init(_ source: CollectionFunction) {
    self.source = source
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

  /// Returns true if a fold can hold the function's values: numbers, strings and booleans of a known type.
  fileprivate static func canFold(_ function: CollectionFunction) -> Bool {
    switch function.function {
    case .size, .all, .exists, .existsOne: return true
    case .sum, .avg: return function.elementType == .int || function.elementType == .double
    case .min, .max:
      return function.elementType == .int || function.elementType == .double || function.elementType == .string
    }
  }

  static func == (left: MemberExpression, right: MemberExpression) -> Bool { left === right }

  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

  /// Returns the contribution of a member, with a budget of its own: a member costs the same whatever the others cost.
  func contribution(
    of member: Value, in reader: any ObjectReader, latest: inout LatestRevision
  ) -> RunningFold.Contribution {
    let pass = EvaluationPass(reader: reader)
    defer { latest.note(pass.latest.revision) }
    var budget = EvaluationBudget(limits)
    return contribution(of: member, pass, budget: &budget)
  }

  /// Returns the contribution of a member. The cost is taken from the budget of the whole evaluation.
  func contribution(
    of member: Value, _ pass: EvaluationPass, budget: inout EvaluationBudget
  ) -> RunningFold.Contribution {
    switch source.contribution(of: pass.expressionValue(ofMember: member), budget: &budget) {
    case .failure(let error): return .failure(error.message)
    case .success(nil): return .none
    case .success(let value?):
      if function == .count { return .value(.bool(true)) }
      guard let value = Value(value, as: nil) else { return .failure("a value is not a JSON number") }
      return .value(value)
    }
  }
}

extension CollectionFunction {
  /// The type of an element's contribution.
  fileprivate var elementType: ExpressionType { transform?.type ?? .dyn }
}

extension Schema {
  /// The indexes of the named keys along a path; empty if one of them does not exist.
  fileprivate func keys(along path: [String], from entity: Entity) -> [Int] {
    var owner: Entity? = entity
    var keys: [Int] = []
    for name in path where !(keys.isEmpty && name == Expression.rootVariable) {
      guard let current = owner, let key = current.indexOfKey(name) else { return [] }
      keys.append(key)
      owner = destination(of: current.keys[key])
    }
    return keys
  }

  /// The entity of the members of the collection at the end of a path, or `.some(nil)` if the members are values; nil
  /// if the path does not end in a collection.
  fileprivate func collectionMember(along keys: [Int], from entity: Entity) -> Entity?? {
    var owner = entity
    for key in keys.dropLast() {
      guard let next = destination(of: owner.keys[key]) else { return nil }
      owner = next
    }
    guard let last = keys.last, case .toMany(let toMany) = owner.keys[last].kind else { return nil }
    return .some(toMany.destination.flatMap { self.entity(named: $0) })
  }
}

extension ExpressionValue {
  /// Creates the value of a folded collection, in the type that the function has in the expression.
  fileprivate init(folded value: Value, as type: ExpressionType) {
    switch value {
    case .null: self = .null
    case .bool(let value): self = .bool(value)
    case .integer(let value): self = type == .double ? .double(Double(value)) : .int(value)
    case .number(let value): self = .double(value)
    case .string(let text): self = .string(text)
    default: self = .null
    }
  }
}
