/// The steps that notifying the observers of consecutive commits may take, shared by the clients that pay for them.
///
/// A step is one of `ReadingWork`: an object that is read, a member that is copied or folded, a step of an expression.
/// The last quarter is reserved for clients that have used less than their share of it, so that a client that observes
/// little is still notified of the last operation when another has used up the rest.
package struct ObservationBudget: Sendable {
  /// Steps for following one more member of a collection.
  package static let stepsPerLink = 4
  /// Steps for one change of an attribute of which nothing else has to be told.
  static let stepsPerNotice = 5

  /// The steps in total; `.max` for no limit.
  private(set) var limit: Int
  /// Steps added for each object that the commits write beyond the first: they take long without observers too.
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

  /// A budget of `limit` steps, without a limit by default, of which each change takes 5: it is made and put in order.
  package init(steps limit: Int = .max) { self.init(steps: limit, perChange: 5, perObject: 0) }

  private init(steps limit: Int, perChange: Int, perObject: Int) {
    (self.limit, stepsPerChange, stepsPerObject) = (limit, perChange, perObject)
  }

  /// The budget of commits that are published: each change takes 250 steps, since it is encoded too, and each object
  /// that the commits write beyond the first adds 100.
  package static func publishing(steps limit: Int) -> ObservationBudget {
    ObservationBudget(steps: limit, perChange: 250, perObject: 100)
  }

  /// True if nothing has to be counted.
  var isUnlimited: Bool { limit == .max }

  /// True while so much is left that the order of evaluation does not matter.
  var isPlentiful: Bool { spentSteps <= limit / 2 }

  /// A commit begins that writes `count` objects.
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

  /// Counts a change, which the clients share.
  mutating func spendChange(by payers: [QueryPayer]) { spend(stepsPerChange, by: payers) }

  /// Counts clients as concerned by the commits: the reserve is divided among all of these.
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
    count(steps)
    for payer in payers { spent[payer, default: 0] += max(1, steps / payers.count) }
  }
}
