/// The steps that evaluating the observations of one commit may take, shared between the clients that pay for them.
///
/// A step is one of `ReadingWork`: an object that is read, a member that is copied or folded, a step of an expression.
/// The last quarter is reserved for clients that have used less than their share of it, so that a client that observes
/// little is still notified of the last operation of a commit when another has used up the rest.
package struct ObservationBudget: Sendable {
  /// Steps added for each object of a commit beyond the first: a commit of many objects takes long without observers.
  static let stepsPerObject = 100
  /// Steps for one change: it is made, put in order and encoded.
  static let stepsPerChange = 5

  /// The steps in total; `.max` for no limit.
  let limit: Int
  /// True if all commits together have these steps, false if each has as many.
  private let spansCommits: Bool
  /// The steps used so far.
  private(set) var spentSteps = 0
  /// The steps used so far by each client that the commit concerns.
  private(set) var spent: [QueryPayer: Int] = [:]

  /// A budget of `limit` steps for each commit of one object or, with `spansCommits`, for all commits together; without
  /// a limit by default.
  package init(steps limit: Int = .max, spansCommits: Bool = false) {
    self.limit = limit
    self.spansCommits = spansCommits
  }

  /// True if nothing has to be counted.
  var isUnlimited: Bool { limit == .max }

  /// True while so much is left that the order of evaluation does not matter.
  var isPlentiful: Bool { spentSteps <= limit / 2 }

  /// The budget of the next commit, which writes `objects` objects.
  func next(objects: Int) -> ObservationBudget {
    guard !isUnlimited, !spansCommits else { return self }
    guard objects > 1 else { return ObservationBudget(steps: limit) }
    let (product, isTooMuch) = (objects - 1).multipliedReportingOverflow(by: Self.stepsPerObject)
    let (sum, isOver) = limit.addingReportingOverflow(product)
    return ObservationBudget(steps: isTooMuch || isOver ? .max : sum)
  }

  /// Counts clients as concerned by the commit: the reserve is divided among all of these.
  mutating func note(_ payers: some Sequence<QueryPayer>) {
    for payer in payers { spent[payer, default: 0] += 0 }
  }

  /// The most steps that the next evaluation for these clients may take.
  func allowance(of payers: [QueryPayer]) -> Int {
    let reserve = limit / 4
    let share = reserve / max(1, spent.count)
    let least = payers.map { spent[$0] ?? 0 }.min() ?? 0
    return max(0, limit - reserve - spentSteps, share - least)
  }

  /// Counts steps, which the clients share.
  mutating func spend(_ steps: Int, by payers: [QueryPayer]) {
    spentSteps = min(spentSteps, .max - steps) + steps
    for payer in payers { spent[payer, default: 0] += max(1, steps / payers.count) }
  }
}
