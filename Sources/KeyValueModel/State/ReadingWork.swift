import CEL

/// The work of one request that reads: how many steps it may still take, and what it has worked out so far.
///
/// A step is an object that is looked at, a step of an expression (`EvaluationBudget`), a member that is copied or
/// folded, or two objects that are compared. What many objects of one answer ask of the same other object, as what the
/// members of a collection fold into, is worked out once and remembered.
///
/// Reading cannot throw: it is a hot path of writers too. So the work stops instead, once its steps are used up or
/// nobody waits for the result any more. A reader that carries it then finds no objects, what is under way comes to its
/// end at once, and its result is worth nothing: `check` throws, and is called before a result is used.
///
/// Belongs to one thread at a time, and to one state: what it remembers is of that state.
public final class ReadingWork {
  /// Why the work stopped.
  package enum Stop: Hashable, Sendable {
    /// Its steps are used up.
    case steps
    /// Nobody waits for the result any more.
    case abandoned
  }

  /// The value of an expression for an object.
  struct Evaluation: Hashable {
    let expression: ObjectIdentifier
    let object: Reference
  }

  /// What one collection of an object folds into.
  struct Folding: Hashable {
    let fold: CollectionFold
    let owner: Reference
    /// Whether members that may not be read are left out.
    let isGuarded: Bool
    /// Whether it is read for a computed key, so that other revisions count.
    let isForComputedKey: Bool
  }

  /// The value of a computed key of an object.
  struct Computation: Hashable {
    let key: Int
    let object: Reference
  }

  /// Something that was worked out, and the last revision of the objects that it was read from.
  struct Known<Result> {
    let result: Result
    let latest: Revision
  }

  /// After how many steps it is asked again whether the result is still waited for.
  private static let stepsPerLook = 10_000
  /// The most memory that is remembered with, in bytes; beyond it things are worked out again.
  private static let rememberedBytes = 16 << 20
  /// What remembering one thing takes at least.
  private static let bytesPerMemory = 128

  /// The most steps that it may take.
  package private(set) var limit: Int
  /// Why it has stopped; nil as long as it has not.
  package private(set) var stop: Stop?
  private let isAbandoned: () -> Bool
  /// Steps until the next look at the world.
  private var slice = 0
  /// Steps beyond those.
  private var rest: Int
  private var bytesLeft = ReadingWork.rememberedBytes
  private var evaluations: [Evaluation: Known<Result<ExpressionValue, EvaluationError>>] = [:]
  private var foldings: [Folding: Known<FoldedValue>] = [:]
  private var computations: [Computation: Known<Value>] = [:]

  /// Work of at most so many steps. `isAbandoned` says whether nobody waits for the result any more; it is asked every
  /// some thousand steps.
  package init(steps limit: Int, isAbandoned: @escaping () -> Bool = { false }) {
    self.limit = limit
    self.isAbandoned = isAbandoned
    rest = max(limit, 0)
  }

  // MARK: Steps

  /// How many steps may still be taken.
  package var remainingSteps: Int { max(0, slice + rest) }

  /// How many steps were taken.
  package var spentSteps: Int { limit - remainingSteps }

  /// Takes steps. False once the work has stopped.
  @inline(__always)
  @discardableResult
  package func spend(_ steps: Int = 1) -> Bool {
    slice -= steps
    return slice >= 0 || goesOn()
  }

  /// Begins anew with a limit of its own, for the next of several results that are read from the same state: what is
  /// remembered stays.
  package func restart(steps: Int) {
    limit = steps
    stop = nil
    (slice, rest) = (0, max(steps, 0))
  }

  /// Drops everything that is remembered: the next result is read from another state.
  package func forget() {
    guard bytesLeft < Self.rememberedBytes else { return }
    bytesLeft = Self.rememberedBytes
    evaluations.removeAll()
    foldings.removeAll()
    computations.removeAll()
  }

  /// Asks now whether the result is still waited for. False once the work has stopped.
  @discardableResult
  package func look() -> Bool {
    guard stop == nil else { return false }
    return isAbandoned() ? end(.abandoned) : true
  }

  private func goesOn() -> Bool {
    rest += slice
    slice = 0
    guard stop == nil else { return false }
    if rest < 0 { return end(.steps) }
    if isAbandoned() { return end(.abandoned) }
    slice = min(rest, Self.stepsPerLook)
    rest -= slice
    return true
  }

  private func end(_ reason: Stop) -> Bool {
    stop = reason
    (slice, rest) = (0, 0)
    return false
  }

  /// Throws `too-many-steps` where the work has stopped, so that what was read is worth nothing.
  package func check() throws(ModelError) {
    guard let stop else { return }
    switch stop {
    case .steps: throw ModelError(.tooManySteps, "it takes more than \(limit) steps (request.steps) to work this out")
    case .abandoned: throw ModelError(.tooManySteps, "nobody waits for the answer any more")
    }
  }

  /// What an expression may spend: as much as its limits say, and no more than there is.
  func budget(within limits: ExpressionLimits) -> EvaluationBudget {
    EvaluationBudget(cost: min(limits.cost, remainingSteps), depth: limits.evaluationDepth)
  }

  /// Takes what an expression spent of its budget. One that was stopped because no more was left stops the work.
  func settle(_ budget: EvaluationBudget, granted: Int, within limits: ExpressionLimits) {
    spend(granted - budget.remainingCost)
    if budget.remainingCost == 0, granted < limits.cost, stop == nil { _ = end(.steps) }
  }

  // MARK: What is known

  /// The value of an expression for an object, where it is remembered.
  func known(_ evaluation: Evaluation) -> Known<Result<ExpressionValue, EvaluationError>>? { evaluations[evaluation] }

  /// What a collection folds into, where it is remembered.
  func known(_ folding: Folding) -> Known<FoldedValue>? { foldings[folding] }

  /// The value of a computed key, where it is remembered.
  func known(_ computation: Computation) -> Known<Value>? { computations[computation] }

  /// Remembers the value of an expression: one that holds on to no objects, and that no limit has shaped.
  func remember(
    _ result: Result<ExpressionValue, EvaluationError>, latest: Revision, for evaluation: Evaluation
  ) {
    let bytes: Int
    switch result {
    case .failure(let error):
      if error.isLimit { return }
      bytes = error.message.utf8.count
    case .success(.string(let text)): bytes = text.utf8.count
    case .success(.null), .success(.bool), .success(.int), .success(.uint), .success(.double), .success(.timestamp),
      .success(.duration):
      bytes = 0
    case .success: return
    }
    if hasRoom(bytes) { evaluations[evaluation] = Known(result: result, latest: latest) }
  }

  /// Remembers what a collection folds into.
  func remember(_ value: FoldedValue, latest: Revision, for folding: Folding) {
    let bytes =
      switch value {
      case .value(let value): value.approximateBytes
      case .failure(let message): message.utf8.count
      }
    if hasRoom(bytes) { foldings[folding] = Known(result: value, latest: latest) }
  }

  /// Remembers the value of a computed key.
  func remember(_ value: Value, latest: Revision, for computation: Computation) {
    if hasRoom(value.approximateBytes) { computations[computation] = Known(result: value, latest: latest) }
  }

  /// Takes the memory for something. What was read after the work stopped is not worth any.
  private func hasRoom(_ bytes: Int) -> Bool {
    let bytes = bytes + Self.bytesPerMemory
    guard stop == nil, bytes <= bytesLeft else { return false }
    bytesLeft -= bytes
    return true
  }
}

/// A state as one request reads it: what it looks at is counted, and stops where that is too much; see `ReadingWork`.
package struct MeteredState: ObjectReader {
  /// The state that is read.
  package let state: ModelState
  private let meter: ReadingWork

  /// A state that is read as part of some work.
  package init(_ state: ModelState, _ work: ReadingWork) {
    self.state = state
    meter = work
  }

  /// The work that reading takes from.
  package var work: ReadingWork? { meter }

  /// The object of this name; a step. Nil where there is none, and for every object once the work has stopped.
  package func record(_ reference: Reference) -> ObjectRecord? {
    meter.spend() ? state.record(reference) : nil
  }
}
