import KeyValueModel

/// The steps that notifying the observers of consecutive commits may take, shared by the clients that pay for them.
///
/// A step is one of `ReadingWork`: an object that is read, a member that is copied or folded, a step of an expression.
/// The last quarter is reserved for clients that have used less than their share of it, so that a client that observes
/// little is still notified of the last operation when another has used up the rest.
package struct ObservationBudget: Sendable {
  /// Steps for following one more member of a collection.
  package static let stepsPerLink = 4
  /// Steps for one change of an attribute that needs no other work.
  static let stepsPerNotice = 5

  /// The steps in total; `.max` for no limit.
  private(set) var limit: Int
  /// Steps added for each object that the commits write beyond the first: such commits take long even without
  /// observers.
  private let stepsPerObject: Int
  /// Steps for one change.
  private let stepsPerChange: Int
  /// The number of objects that the commits so far write.
  private var objects = 0
  /// The steps used so far.
  private(set) var spentSteps = 0
  /// The steps used so far by each client that the commits concern.
  private(set) var spent: [QueryPayer: Int] = [:]
  /// The steps that each commit so far has taken, which may be more than were used of the budget.
  package private(set) var stepsOfCommits: [Int] = []

  /// Creates a budget of `limit` steps, without a limit by default. Each change takes 5 steps, for making and ordering
  /// it.
  package init(steps limit: Int = .max) { self.init(steps: limit, perChange: 5, perObject: 0) }

  private init(steps limit: Int, perChange: Int, perObject: Int) {
    (self.limit, stepsPerChange, stepsPerObject) = (limit, perChange, perObject)
  }

  /// Returns the budget of commits that are published: each change takes 250 steps, since it is encoded too, and each
  /// object that the commits write beyond the first adds 100.
  package static func publishing(steps limit: Int) -> ObservationBudget {
    ObservationBudget(steps: limit, perChange: 250, perObject: 100)
  }

  /// True if nothing has to be counted.
  var isUnlimited: Bool { limit == .max }

  /// True while so much is left that the order of evaluation does not matter.
  var isPlentiful: Bool { spentSteps <= limit / 2 }

  /// Begins a commit that writes `count` objects.
  mutating func begin(objects count: Int) {
    stepsOfCommits.append(0)
    guard !isUnlimited else { return }
    let added = objects == 0 ? max(0, count - 1) : count
    objects += count
    limit = min(limit, .max - 1 - added * stepsPerObject) + added * stepsPerObject
  }

  /// Counts steps that the present commit has taken, for which no client pays.
  mutating func count(_ steps: Int) {
    if !stepsOfCommits.isEmpty { stepsOfCommits[stepsOfCommits.count - 1] += steps }
  }

  /// Uses the budget for notices, for which no client pays: one step of it for each, since a batch has many commits,
  /// and `stepsPerNotice` of the steps of the commit.
  mutating func use(notices: Int) {
    spentSteps = min(spentSteps, .max - notices) + notices
    count(notices * Self.stepsPerNotice)
  }

  /// The steps that are left.
  var remainingSteps: Int { max(0, limit - spentSteps) }

  /// Counts a change, which the clients share.
  fileprivate mutating func spendChange(by payers: [QueryPayer]) { spend(stepsPerChange, by: payers) }

  /// Counts clients as concerned by the commits: the reserve is divided among all of these.
  fileprivate mutating func note(_ payers: some Sequence<QueryPayer>) {
    for payer in payers { spent[payer, default: 0] += 0 }
  }

  /// Returns the maximum number of steps that the next evaluation for these clients may take.
  fileprivate func allowance(of payers: [QueryPayer]) -> Int {
    let reserve = limit / 4
    let share = reserve / max(1, spent.count)
    let least = payers.map { spent[$0] ?? 0 }.min() ?? 0
    return max(0, limit - reserve - spentSteps, share - least)
  }

  /// Counts steps, which the clients share.
  fileprivate mutating func spend(_ steps: Int, by payers: [QueryPayer]) {
    spentSteps = min(spentSteps, .max - steps) + steps
    count(steps)
    for payer in payers { spent[payer, default: 0] += max(1, steps / payers.count) }
  }
}

/// The observed values of the state between two operations of a commit, each evaluated once for all its observers, and
/// the budget of steps for the evaluations.
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

  /// Creates an instance without values, with a budget.
  init(_ budget: ObservationBudget) { self.budget = budget }

  /// Begins a commit.
  mutating func begin(_ commit: Commit) { budget.begin(objects: commit.before.count) }

  /// Counts steps of the commit for which no client pays.
  mutating func count(_ steps: Int) { budget.count(steps) }

  /// The value of an evaluation; nil if it has not been computed.
  subscript(evaluation: Evaluation) -> Value? { known[evaluation] }

  /// Stores a value for the other observations of it.
  mutating func keep(_ value: Value, for evaluation: Evaluation) {
    evaluationCount += 1
    known[evaluation] = value
  }

  /// Removes all values, because the state is about to change.
  mutating func forget() {
    if !known.isEmpty { known.removeAll(keepingCapacity: true) }
    meter.forget()
  }

  // MARK: Steps

  /// Counts clients as concerned by the commit.
  mutating func note(_ payers: [QueryPayer]) { budget.note(payers) }

  /// Grants the next evaluation the steps that its clients have left. Returns false if there are none.
  mutating func grant(to payers: [QueryPayer]) -> Bool {
    guard !budget.isUnlimited else { return true }
    budget.note(payers)
    let allowance = budget.allowance(of: payers)
    guard allowance > 0 else { return false }
    meter.restart(steps: allowance)
    return true
  }

  /// Counts the steps of the evaluation. Returns false if it took more than it was granted, so that its result is
  /// invalid.
  mutating func finish(for payers: [QueryPayer]) -> Bool {
    guard !budget.isUnlimited else { return true }
    let isWhole = meter.stop == nil
    budget.spend(meter.spentSteps, by: payers)
    meter.restart(steps: .max)
    return isWhole
  }

  /// Counts a change. Returns false if its clients have no steps left for it.
  mutating func takeChange(of payers: [QueryPayer]) -> Bool {
    guard !budget.isUnlimited else { return true }
    guard budget.allowance(of: payers) > 0 else { return false }
    budget.spendChange(by: payers)
    return true
  }
}
