import CEL
import Synchronization

/// A CEL expression over the keys of an entity's objects: a computed key's, or a filter's (the specification, section
/// 8).
///
/// Collection functions that can be kept up to date member by member, such as `sum(employees.map(e, e.salary))`, are
/// taken out of it as folds, so that a reader that keeps folds evaluates it without visiting the members.
package final class KeyExpression: Sendable {
  /// What is wrong with an expression, and where in its text, from 1.
  package struct Mistake: Error, Hashable, Sendable {
    package let line: Int
    package let column: Int
    package let message: String
  }

  /// Names that are words of the language and no keys.
  static let reservedNames: Set<String> = ["this", "true", "false", "null", "in"]

  /// What its values are.
  package let type: ValueType
  /// Whether its values are unsigned integers, which go beyond those of 64 bits.
  let isUnsigned: Bool
  /// What it reads of the object.
  package let reads: KeyTree
  /// Whether it reads more than the object's own keys, which is what may be worth remembering.
  var readsOtherObjects: Bool { reads.branches.contains { $0.fold != nil || !$0.behind.isEmpty } }
  private let expression: CheckedExpression
  private let folds: [FoldCall]
  private let limits = ExpressionLimits()
  private let failures = Atomic<Int>(0)

  /// A collection function that was taken out, and where its collection is.
  private struct FoldCall: Sendable {
    let ownerKeys: [Int]
    let fold: CollectionFold
    let resultType: ExpressionType
  }

  /// Compiles `text` for objects of `entity`: throws where it is no CEL, names what is not there, or applies functions
  /// to what they do not take.
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

  /// The functions as folds, with what they read; nil where one of them cannot be one: what it makes of members has no
  /// known type, or its list is no collection that an object holds.
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

  /// How often it has failed. A failed computed key is null, and the count is the only sign of it.
  package var failureCount: Int { failures.load(ordering: .relaxed) }

  /// Counts a failure.
  func noteFailure() { failures.add(1, ordering: .relaxed) }

  /// The syntax tree, folds taken out.
  var root: ExpressionNode { expression.root }

  // MARK: Evaluating

  /// The value for an object; null where the expression fails. `latest` grows to the last revision of what was read.
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

  /// The value within a pass that is under way, its cost taken from the budget of the whole.
  func evaluate(
    _ reference: Reference, _ record: ObjectRecord, _ pass: EvaluationPass, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue, EvaluationError> {
    expression.evaluate(Activation(self, reference, record, pass), budget: &budget)
  }

  /// Gives the expression its object's keys.
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

/// What a collection function makes of one member: its filters, and its transform. Two are the same only if they are
/// one.
final class MemberExpression: Hashable, Sendable {
  /// How the members' values become one.
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

  /// Whether the function's values are ones that a fold can hold: numbers, strings and booleans whose type is known.
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
  fileprivate var elementType: ExpressionType { transform?.type ?? .dyn }
}

extension Schema {
  /// The indexes of named keys along a path; empty where one is not there.
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

  /// The entity of the members of the collection at the end of a path, `.some(nil)` where they are values, and nil
  /// where there is no collection.
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
  /// What a collection folded into, in the type that the function has for the expression.
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
