/// Whether there is an order of the operations on one register in which each takes effect between its request and its
/// answer, and each answer is right: linearizability (Herlihy and Wing, 1990).
///
/// The search is that of Wing and Gong (1993): it takes any operation that may be next, and goes back where none fits.
/// As Lowe (2017) has it, it remembers what it was in: the set of operations that it has taken, and the state. It knows
/// nothing of revisions, so it cannot be misled by a server that numbers wrong commits well.
enum Linearizability: Hashable, Sendable {
  case holds
  /// There is no such order. `taken` is how many operations the longest attempt took, and `stuck` the indexes of those
  /// of which none could be next then, in the `state` that it had come to.
  case isViolated(taken: Int, stuck: [Int], state: RegisterOperation.State)
  /// The search was given up.
  case isUndecided

  /// So many steps of the search are some seconds.
  private static let maximumSteps = 300_000

  /// Judges a history, in any order, of a register that was in the state `initial` before it.
  static func check(
    _ history: [RegisterOperation], from initial: RegisterOperation.State, maximumSteps: Int = maximumSteps
  ) -> Linearizability {
    // What nothing is known of and has no effect says nothing.
    let order = history.indices.filter { history[$0].answered != nil || history[$0].effect != .none }
      .sorted { (history[$0].invoked, $0) < (history[$1].invoked, $1) }
    // Most writes without an answer were not done, and without those that no answer shows the search is short. An order
    // of the others is one of all.
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

  /// The search, depth first, with a stack of its own.
  private struct Search {
    /// Where the search stands: what it has taken, and what that made of the register.
    struct Position: Hashable {
      var taken: TakenSet
      var state: RegisterOperation.State
    }

    /// A position, and which of the operations that may be next have still to be tried there.
    struct Branch {
      var position: Position
      var untried: [Int]
    }

    /// By the time of the request.
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

    /// Takes at once what has no effect and fits: it can do no harm, now or later. Gives what may be next after that.
    private func advance(_ position: inout Position) -> [Int] {
      while true {
        let candidates = candidates(position.taken)
        let idle = candidates.filter { operations[$0].effect == .none && fits($0, position) }
        if idle.isEmpty { return candidates }
        for index in idle { position = take(index, position) }
      }
    }

    /// What may be next: whatever was asked for before the first answer that is still to be taken.
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

    /// Those of the candidates that fit, the most promising last: what was answered first probably took effect first,
    /// and most of what was not answered was never done.
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

/// Which operations of a history a search has taken: a bit for each.
private struct TakenSet: Hashable, Sendable {
  private var words: [UInt64]
  /// How many of them were answered.
  private(set) var answered = 0
  /// All before this one are taken.
  private(set) var firstMissing = 0
  private let count: Int

  /// None of so many.
  init(count: Int) {
    self.count = count
    words = [UInt64](repeating: 0, count: (count + 63) / 64)
  }

  /// Whether it is taken.
  func contains(_ index: Int) -> Bool { words[index >> 6] >> UInt64(index & 63) & 1 == 1 }

  /// Takes one that is not taken yet.
  mutating func insert(_ index: Int, isAnswered: Bool) {
    words[index >> 6] |= 1 << UInt64(index & 63)
    if isAnswered { answered += 1 }
    while firstMissing < count, contains(firstMissing) { firstMissing += 1 }
  }
}

/// What one client did to one register, and when: one line of a history that `Linearizability` judges.
///
/// A register holds a value or is absent. Each write sets a value of its own, so a condition on the version of a
/// register is one on its value.
struct RegisterOperation: Hashable, Sendable {
  /// What a register holds; nil where it is absent.
  typealias State = Int?

  /// What has to hold of the register at the moment when an operation takes effect.
  enum Condition: Hashable, Sendable {
    case always
    /// It holds just this, or is absent.
    case isState(State)
    /// It holds something else than this value, or is absent.
    case isNot(Int)
    /// It holds something else than this value.
    case isOther(Int)
    case isPresent

    /// The value that has to be there; nil where it may be any, or none.
    var value: Int? { if case .isState(let value) = self { value } else { nil } }

    /// Whether it holds of a register in this state.
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

  /// What an operation makes of the register.
  enum Effect: Hashable, Sendable {
    /// Reads and refusals.
    case none
    case becomes(State)

    /// The state after it.
    func applied(to state: State) -> State {
      switch self {
      case .none: state
      case .becomes(let next): next
      }
    }
  }

  /// When it was asked for, in nanoseconds of some clock that all clients share.
  var invoked: UInt64
  /// When its answer was there; nil where none came: then it may be done at any later time, or never.
  var answered: UInt64?
  /// What has to hold when it takes effect: for a success what the request demanded, for a read what was read, for a
  /// refusal what justifies it.
  var condition: Condition
  var effect: Effect
}
