import CEL

/// The work of one request that reads: the steps that it may still take, and the results that it has computed so far.
///
/// A step is an object that is read, a step of an expression (`EvaluationBudget`), a member that is copied or folded,
/// or a comparison of two objects. Results that many objects of one answer need from the same other object, such as the
/// fold of a collection, are computed once and remembered.
///
/// Reading cannot throw, since it is a hot path of writers too. Instead the work stops once its steps are used up or
/// the client no longer waits for the result. A reader with this work then finds no objects, so that the current
/// computation ends at once, with a result that is meaningless: call `check`, which then throws, before using a result.
///
/// Belongs to one thread at a time, and to one state, from which all remembered results come.
public final class ReadingWork {
  /// The reason why the work stopped.
  package enum Stop: Hashable, Sendable {
    /// Its steps are used up.
    case steps
    /// The client no longer waits for the result.
    case abandoned
  }

  /// The value of an expression for an object.
  struct Evaluation: Hashable {
    let expression: ObjectIdentifier
    let object: Reference
  }

  /// The fold of one collection of an object.
  struct Folding: Hashable {
    let fold: CollectionFold
    let owner: Reference
    /// True if members that may not be read are left out.
    let isGuarded: Bool
    /// True if the fold is read for a computed key, for which other revisions count.
    let isForComputedKey: Bool
  }

  /// The value of a computed key of an object.
  struct Computation: Hashable {
    let key: Int
    let object: Reference
  }

  /// A result, and the last revision of the objects that it was read from.
  struct Known<Result> {
    let result: Result
    let latest: Revision
  }

  /// The number of steps between two checks whether the client still waits for the result.
  private static let stepsPerLook = 10_000
  /// The maximum memory for remembered results, in bytes; beyond it results are computed again.
  private static let rememberedBytes = 16 << 20
  /// The minimum memory that a remembered result takes, in bytes.
  private static let bytesPerMemory = 128

  /// The maximum number of steps.
  package private(set) var limit: Int
  /// The reason why the work has stopped; nil if it has not.
  package private(set) var stop: Stop?
  private let isAbandoned: () -> Bool
  /// The steps until the next check.
  private var slice = 0
  /// The steps beyond those in `slice`.
  private var rest: Int
  private var bytesLeft = ReadingWork.rememberedBytes
  private var evaluations: [Evaluation: Known<Result<ExpressionValue, EvaluationError>>] = [:]
  private var foldings: [Folding: Known<FoldedValue>] = [:]
  private var computations: [Computation: Known<Value>] = [:]

  /// Creates work of at most `limit` steps. `isAbandoned` returns true if the client no longer waits for the result; it
  /// is called every few thousand steps.
  package init(steps limit: Int, isAbandoned: @escaping () -> Bool = { false }) {
    self.limit = limit
    self.isAbandoned = isAbandoned
    rest = max(limit, 0)
  }

  // MARK: Steps

  /// The number of steps left.
  package var remainingSteps: Int { max(0, slice + rest) }

  /// The number of steps taken.
  package var spentSteps: Int { limit - remainingSteps }

  /// Takes steps. Returns false if the work has stopped.
  @inline(__always)
  @discardableResult
  package func spend(_ steps: Int = 1) -> Bool {
    slice -= steps
    return slice >= 0 || goesOn()
  }

  /// Restarts with a limit of its own, for the next of several results that are read from the same state: remembered
  /// results are kept.
  package func restart(steps: Int) {
    limit = steps
    stop = nil
    (slice, rest) = (0, max(steps, 0))
  }

  /// Forgets all remembered results, since the next result is read from another state.
  package func forget() {
    guard bytesLeft < Self.rememberedBytes else { return }
    bytesLeft = Self.rememberedBytes
    evaluations.removeAll()
    foldings.removeAll()
    computations.removeAll()
  }

  /// Checks now whether the client still waits for the result. Returns false if the work has stopped.
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

  /// Throws `too-many-steps` if the work has stopped, so that what was read is meaningless.
  package func check() throws(ModelError) {
    guard let stop else { return }
    switch stop {
    case .steps: throw ModelError(.tooManySteps, "the request takes more than \(limit) steps (request.steps)")
    case .abandoned: throw ModelError(.tooManySteps, "the client no longer waits for the response")
    }
  }

  /// Returns the budget of an expression: the cost of its limits, but no more than the steps left.
  func budget(within limits: ExpressionLimits) -> EvaluationBudget {
    EvaluationBudget(cost: min(limits.cost, remainingSteps), depth: limits.evaluationDepth)
  }

  /// Takes the steps that an expression spent of its budget. Stops the work if the expression ran out of the work's
  /// steps.
  func settle(_ budget: EvaluationBudget, granted: Int, within limits: ExpressionLimits) {
    spend(granted - budget.remainingCost)
    if budget.remainingCost == 0, granted < limits.cost, stop == nil { _ = end(.steps) }
  }

  // MARK: Remembered results

  /// Returns the value of an expression for an object if it is remembered.
  func known(_ evaluation: Evaluation) -> Known<Result<ExpressionValue, EvaluationError>>? { evaluations[evaluation] }

  /// Returns the fold of a collection if it is remembered.
  func known(_ folding: Folding) -> Known<FoldedValue>? { foldings[folding] }

  /// Returns the value of a computed key if it is remembered.
  func known(_ computation: Computation) -> Known<Value>? { computations[computation] }

  /// Remembers the value of an expression if it retains no objects and is not the effect of a limit.
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

  /// Remembers the fold of a collection.
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

  /// Reserves memory for a result. Returns false if it does not suffice, or the work has stopped, so that the result is
  /// meaningless.
  private func hasRoom(_ bytes: Int) -> Bool {
    let bytes = bytes + Self.bytesPerMemory
    guard stop == nil, bytes <= bytesLeft else { return false }
    bytesLeft -= bytes
    return true
  }
}

/// A state as one request reads it: each read is counted, and reading stops at the limit of the work; see
/// `ReadingWork`.
package struct MeteredState: ObjectReader {
  /// The state that is read.
  package let state: ModelState
  private let meter: ReadingWork

  /// Creates a state that is read as part of some work.
  package init(_ state: ModelState, _ work: ReadingWork) {
    self.state = state
    meter = work
  }

  /// The work from which reads take steps.
  package var work: ReadingWork? { meter }

  /// Returns the object with this reference, as one step; nil if it does not exist, and for every object once the work
  /// has stopped.
  package func record(_ reference: Reference) -> ObjectRecord? {
    meter.spend() ? state.record(reference) : nil
  }
}
