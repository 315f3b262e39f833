import KeyValueModel

/// The observed values of the state between two operations of a commit, each worked out once however many observe it,
/// and the steps that working them out may take.
struct StateValues {
  /// A value that several observations may have in common.
  enum Evaluation: Hashable {
    /// The value of a number of `ValueNumbers`, as a viewer may see it before or after the commit.
    case observed(Int, isBefore: Bool)
    /// The value of a computed key that may keep silent.
    case gate(ObservedKey)
  }

  /// The steps of all commits.
  private(set) var budget: ObservationBudget
  /// Counts the steps of one evaluation; without a limit between evaluations.
  let meter = ReadingWork(steps: .max)
  private var known: [Evaluation: Value] = [:]
  /// The number of evaluations. For tests.
  private(set) var evaluationCount = 0

  /// No values, and a budget.
  init(_ budget: ObservationBudget) { self.budget = budget }

  /// A commit begins.
  mutating func begin(_ commit: Commit) { budget.begin(objects: commit.before.count) }

  /// Counts steps of the commit for which no client pays.
  mutating func count(_ steps: Int) { budget.count(steps) }

  /// The value of an evaluation; nil if it has not been worked out.
  subscript(evaluation: Evaluation) -> Value? { known[evaluation] }

  /// Keeps a value for the others that observe it.
  mutating func keep(_ value: Value, for evaluation: Evaluation) {
    evaluationCount += 1
    known[evaluation] = value
  }

  /// Forgets all values: the state is about to change.
  mutating func forget() {
    if !known.isEmpty { known.removeAll(keepingCapacity: true) }
    meter.forget()
  }

  // MARK: Steps

  /// Counts clients as concerned by the commit.
  mutating func note(_ payers: [QueryPayer]) { budget.note(payers) }

  /// Grants the next evaluation as much as its clients have left. False if that is nothing.
  mutating func grant(to payers: [QueryPayer]) -> Bool {
    guard !budget.isUnlimited else { return true }
    budget.note(payers)
    let allowance = budget.allowance(of: payers)
    guard allowance > 0 else { return false }
    meter.restart(steps: allowance)
    return true
  }

  /// Counts what the evaluation took. False if that was more than it was granted, so that its result is worth nothing.
  mutating func finish(for payers: [QueryPayer]) -> Bool {
    guard !budget.isUnlimited else { return true }
    let isWhole = meter.stop == nil
    budget.spend(meter.spentSteps, by: payers)
    meter.restart(steps: .max)
    return isWhole
  }

  /// Counts a change. False if its clients have nothing left for it.
  mutating func takeChange(of payers: [QueryPayer]) -> Bool {
    guard !budget.isUnlimited else { return true }
    guard budget.allowance(of: payers) > 0 else { return false }
    budget.spendChange(by: payers)
    return true
  }
}
