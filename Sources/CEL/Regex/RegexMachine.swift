/// Runs a program over a text: all places of the program that can be reached are followed at once, one character after
/// the other, so that the time is at most the product of both lengths.
struct RegexMachine {
  private let program: RegexProgram
  /// For each instruction the number of the character at which it was last reached.
  private var reached: [Int]
  private var stack: [Int] = []
  /// Instructions that take the next character.
  private var takers: [Int] = []
  private var position = 0

  private init(_ program: RegexProgram) {
    self.program = program
    reached = Array(repeating: -1, count: program.instructions.count)
  }

  /// Whether any part of `text` matches. Every step costs. Throws when the budget is spent.
  static func matches(
    _ program: RegexProgram, _ text: String, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Bool {
    try budget.spend(program.instructions.count / EvaluationBudget.bytesPerUnit)
    var machine = RegexMachine(program)
    var previous: Unicode.Scalar?
    var pending: [Int] = []
    var rest = text.unicodeScalars.makeIterator()
    var next = rest.next()
    while true {
      if try machine.follow(pending, previous, next, &budget) { return true }
      guard let scalar = next else { return false }
      pending = try machine.step(scalar, &budget)
      previous = scalar
      next = rest.next()
    }
  }

  /// Follows `places` and the start of the program up to instructions that take a character. Whether the end is
  /// reached.
  private mutating func follow(
    _ places: [Int], _ previous: Unicode.Scalar?, _ next: Unicode.Scalar?, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> Bool {
    takers.removeAll(keepingCapacity: true)
    stack = places
    stack.append(0)
    var steps = 0
    while let place = stack.popLast() {
      guard reached[place] != position else { continue }
      reached[place] = position
      steps += 1
      switch program.instructions[place] {
      case .match: return true
      case .take, .scalar: takers.append(place)
      case .jump(let target): stack.append(target)
      case .split(let first, let second):
        stack.append(second)
        stack.append(first)
      case .check(let assertion):
        if assertion.holds(previous, next) { stack.append(place + 1) }
      }
    }
    position += 1
    try budget.spend(steps)
    return false
  }

  /// The instructions after those that take `scalar`.
  private func step(
    _ scalar: Unicode.Scalar, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> [Int] {
    var places: [Int] = []
    var cost = 0
    for taker in takers {
      switch program.instructions[taker] {
      case .scalar(scalar):
        cost += 1
        places.append(taker + 1)
      case .take(let set):
        cost += program.cost(ofSet: set)
        if program.sets[set].contains(scalar) { places.append(taker + 1) }
      default: cost += 1
      }
    }
    try budget.spend(cost)
    return places
  }
}
