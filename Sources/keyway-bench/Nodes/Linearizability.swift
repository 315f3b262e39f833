/// The result of a check for linearizability (Herlihy and Wing, 1990): whether the operations on one register can be
/// ordered so that each takes effect between its request and its answer, and each answer is right.
///
/// The search is that of Wing and Gong (1993): it takes any operation that may be next, and backtracks if none fits. As
/// in Lowe (2017), it remembers the visited configurations: the set of operations that it has taken, and the state. It
/// does not use revisions, so a server that numbers wrong commits well cannot mislead it.
enum Linearizability: Hashable, Sendable {
  case holds
  /// There is no such order. `taken` is the number of operations that the longest attempt took; `stuck` are the indexes
  /// of the operations that were possible next but did not fit the `state` at that point.
  case isViolated(taken: Int, stuck: [Int], state: RegisterOperation.State)
  /// The search was given up.
  case isUndecided

  /// The maximum number of steps of the search, which take some seconds.
  private static let maximumSteps = 300_000

  /// Checks a history, in any order, of a register that was in the state `initial` before it.
  static func check(
    _ history: [RegisterOperation], from initial: RegisterOperation.State, maximumSteps: Int = maximumSteps
  ) -> Linearizability {
    // An operation without an answer or an effect provides no information.
    let order = history.indices.filter { history[$0].answered != nil || history[$0].effect != .none }
      .sorted { (history[$0].invoked, $0) < (history[$1].invoked, $1) }
    // Most writes without an answer were not done, and the search is short without those whose values no answer shows.
    // An order of the other operations is an order of all.
    let shown = Set(history.compactMap { $0.answered == nil ? nil : $0.condition.value })
    let likely = order.filter { index in
      guard history[index].answered == nil, case .becomes(let value?) = history[index].effect else { return true }
      return shown.contains(value)
    }
    if likely.count < order.count {
      var search = Search(operations: likely.map { history[$0] }, state: initial)
      if search.run(maximumSteps: maximumSteps) == .holds { return .holds }
    }
    var search = Search(operations: order.map { history[$0] }, state: initial)
    let result = search.run(maximumSteps: maximumSteps)
    guard case .isViolated(let taken, let stuck, let state) = result else { return result }
    return .isViolated(taken: taken, stuck: stuck.map { order[$0] }, state: state)
  }

  /// The depth-first search, with an explicit stack.
  private struct Search {
    /// A configuration of the search: the operations taken, and the resulting state of the register.
    struct Position: Hashable {
      var taken: TakenSet
      var state: RegisterOperation.State
    }

    /// A position, and the next operations that were not tried there yet.
    struct Branch {
      var position: Position
      var untried: [Int]
    }

    /// The operations, by the time of the request.
    let operations: [RegisterOperation]
    private let answeredCount: Int
    private var seen: Set<Position> = []
    private var best = (taken: -1, stuck: [Int](), state: RegisterOperation.State.none)
    private let initial: RegisterOperation.State

    init(operations: [RegisterOperation], state: RegisterOperation.State) {
      self.operations = operations
      initial = state
      answeredCount = operations.count { $0.answered != nil }
    }

    mutating func run(maximumSteps: Int) -> Linearizability {
      var stack: [Branch] = []
      var next: Position? = Position(taken: TakenSet(count: operations.count), state: initial)
      for _ in 0..<maximumSteps {
        if var position = next {
          next = nil
          let candidates = advance(&position)
          guard position.taken.answered < answeredCount else { return .holds }
          if seen.insert(position).inserted {
            stack.append(Branch(position: position, untried: untried(candidates, position)))
            note(position, candidates)
          }
        }
        guard var branch = stack.popLast() else {
          return .isViolated(taken: best.taken, stuck: best.stuck, state: best.state)
        }
        guard let index = branch.untried.popLast() else { continue }
        next = take(index, branch.position)
        stack.append(branch)
      }
      return .isUndecided
    }

    /// Takes all possible operations that fit and have no effect: that can do no harm, now or later. Returns the
    /// operations that are possible next.
    private func advance(_ position: inout Position) -> [Int] {
      while true {
        let candidates = candidates(position.taken)
        let idle = candidates.filter { operations[$0].effect == .none && fits($0, position) }
        if idle.isEmpty { return candidates }
        for index in idle { position = take(index, position) }
      }
    }

    /// Returns the operations that are possible next: those requested before the first answer among the operations not
    /// taken.
    private func candidates(_ taken: TakenSet) -> [Int] {
      var candidates: [Int] = []
      var firstAnswer = UInt64.max
      for index in taken.firstMissing..<operations.count where !taken.contains(index) {
        let operation = operations[index]
        guard operation.invoked <= firstAnswer else { break }
        candidates.append(index)
        firstAnswer = min(firstAnswer, operation.answered ?? .max)
      }
      return candidates.filter { operations[$0].invoked <= firstAnswer }
    }

    /// Returns the candidates that fit, the most promising last: the operation answered first probably took effect
    /// first, and most operations without an answer were never done.
    private func untried(_ candidates: [Int], _ position: Position) -> [Int] {
      candidates.filter { fits($0, position) }
        .sorted { (operations[$0].answered ?? .max, $0) > (operations[$1].answered ?? .max, $1) }
    }

    private func fits(_ index: Int, _ position: Position) -> Bool {
      operations[index].condition.holds(of: position.state)
    }

    private func take(_ index: Int, _ position: Position) -> Position {
      let operation = operations[index]
      var next = position
      next.taken.insert(index, isAnswered: operation.answered != nil)
      next.state = operation.effect.applied(to: position.state)
      return next
    }

    private mutating func note(_ position: Position, _ candidates: [Int]) {
      guard position.taken.answered > best.taken else { return }
      best = (position.taken.answered, candidates.filter { operations[$0].answered != nil }, position.state)
    }
  }
}

/// The set of the operations that a search has taken: a bit for each.
private struct TakenSet: Hashable, Sendable {
  private var words: [UInt64]
  /// The number of taken operations with an answer.
  private(set) var answered = 0
  /// The index of the first operation that is not taken.
  private(set) var firstMissing = 0
  private let count: Int

  /// Creates an empty set for `count` operations.
  init(count: Int) {
    self.count = count
    words = [UInt64](repeating: 0, count: (count + 63) / 64)
  }

  /// Returns true if an operation is taken.
  func contains(_ index: Int) -> Bool { words[index >> 6] >> UInt64(index & 63) & 1 == 1 }

  /// Adds an operation that is not taken yet.
  mutating func insert(_ index: Int, isAnswered: Bool) {
    words[index >> 6] |= 1 << UInt64(index & 63)
    if isAnswered { answered += 1 }
    while firstMissing < count, contains(firstMissing) { firstMissing += 1 }
  }
}

/// The operation of one client on one register, with its times: one line of a history that `Linearizability` checks.
///
/// A register has a value or is absent. Each write sets a unique value, so a condition on the version of a register is
/// one on its value.
struct RegisterOperation: Hashable, Sendable {
  /// The value of a register; nil if it is absent.
  typealias State = Int?

  /// A condition that the register must satisfy when an operation takes effect.
  enum Condition: Hashable, Sendable {
    case always
    /// The register has exactly this value, or is absent if that is nil.
    case isState(State)
    /// The register has another value than this, or is absent.
    case isNot(Int)
    /// The register has another value than this.
    case isOther(Int)
    case isPresent

    /// The required value; nil if none is required.
    var value: Int? { if case .isState(let value) = self { value } else { nil } }

    /// Returns true if a register in a state satisfies the condition.
    func holds(of state: State) -> Bool {
      switch self {
      case .always: true
      case .isState(let wanted): state == wanted
      case .isNot(let value): state != value
      case .isOther(let value): state != nil && state != value
      case .isPresent: state != nil
      }
    }
  }

  /// The effect of an operation on the register.
  enum Effect: Hashable, Sendable {
    /// No effect, as for reads and refusals.
    case none
    case becomes(State)

    /// Returns the state after the effect.
    func applied(to state: State) -> State {
      switch self {
      case .none: state
      case .becomes(let next): next
      }
    }
  }

  /// The time of the request, in nanoseconds of a clock that all clients share.
  var invoked: UInt64
  /// The time of the answer; nil if there was none: then the operation may be done at any later time, or never.
  var answered: UInt64?
  /// The condition when it takes effect: for a success what the request demanded, for a read what was read, for a
  /// refusal what justifies it.
  var condition: Condition
  var effect: Effect
}
