package import CEL
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
  private let limits: ExpressionLimits
  private let failures = Atomic<Int>(0)

  /// A collection function that was taken out, and where its collection is.
  private struct FoldCall: Sendable {
    let ownerKeys: [Int]
    let fold: CollectionFold
    let resultType: ExpressionType
  }

  /// Compiles `text` for objects of `entity`: throws where it is no CEL, names what is not there, or applies functions
  /// to what they do not take.
  package init(
    _ text: String, of entity: Entity, in schema: Schema, limits: ExpressionLimits = ExpressionLimits()
  ) throws(Mistake) {
    let environment = SchemaEnvironment(schema: schema, entity: entity)
    let whole: CheckedExpression
    do throws(ExpressionError) {
      whole = try Expression(parsing: text, limits: limits).checked(in: environment)
    } catch {
      throw Mistake(line: error.line, column: error.column, message: error.message)
    }
    self.limits = limits
    type = ValueType(whole.type)
    isUnsigned = whole.type == .uint
    let (rest, functions) = whole.extractingCollectionFunctions()
    if !functions.isEmpty, let calls = Self.calls(functions, of: entity, in: schema, limits) {
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
    _ functions: [CollectionFunction], of entity: Entity, in schema: Schema, _ limits: ExpressionLimits
  ) -> [(call: FoldCall, reads: KeyTree)]? {
    var calls: [(call: FoldCall, reads: KeyTree)] = []
    for function in functions {
      let keys = schema.keys(along: function.path, from: entity)
      guard MemberExpression.canFold(function), let key = keys.last,
        let destination = schema.collectionMember(along: keys, from: entity)
      else { return nil }
      let member = MemberExpression(function, limits: limits)
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

  /// The text as it was written.
  package var text: String { expression.text }

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
