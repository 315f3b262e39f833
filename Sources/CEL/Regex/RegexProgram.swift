/// A pattern in the syntax of RE2 as a program for `RegexMachine` (Thompson, 1968). Matching takes time proportional to
/// the text, whatever the pattern, because there is no backtracking.
package struct RegexProgram: Sendable {
  fileprivate enum Instruction: Sendable {
    /// Takes this character, then continues with the next instruction.
    case scalar(Unicode.Scalar)
    /// Takes one character of a set, then continues with the next instruction.
    case take(Int)
    /// Continues with both.
    case split(Int, Int)
    case jump(Int)
    case check(RegexAssertion)
    case match
  }

  /// The maximum number of instructions of a program: `(a{100}){100}` is too large.
  private static let sizeLimit = 4_000

  fileprivate private(set) var instructions: [Instruction] = []
  fileprivate private(set) var sets: [ScalarSet] = []
  /// The number of scalars that were folded for `(?i)` when the program was made.
  private let foldedCount: Int

  /// Creates the program of `pattern`, in which `\d`, `\s`, `\w` and `\b` are those of Unicode, or those of ASCII alone
  /// as in RE2. Throws if the pattern is invalid or too large.
  package init(_ pattern: String, isUnicode: Bool = false) throws(RegexError) {
    var parser = RegexParser(pattern, isUnicode: isUnicode)
    let node = try parser.parse()
    foldedCount = parser.foldedCount
    try emit(node, pattern)
    instructions.append(.match)
  }

  /// Returns true if some part of `text` matches. O(n) in the text, at most times the instructions of the program.
  package func matches(_ text: String) -> Bool {
    var budget = EvaluationBudget(cost: .max, depth: 0)
    // No text is so long that its cost is beyond the budget.
    return (try? RegexMachine.matches(self, text, &budget)) ?? false
  }

  /// The cost of making the program, for a pattern that is known only when the expression is evaluated.
  var cost: Int { instructions.count + foldedCount }

  /// Returns the cost of testing one character against a set.
  fileprivate func cost(ofSet index: Int) -> Int { 1 + sets[index].size / 4 }

  private mutating func append(_ instruction: Instruction, _ pattern: String) throws(RegexError) {
    guard instructions.count < RegexProgram.sizeLimit else {
      throw RegexError("the pattern is too large", in: pattern, at: 0)
    }
    instructions.append(instruction)
  }

  /// Appends the instructions of a node. Every node makes at least one instruction, so that the limit bounds the time.
  private mutating func emit(_ node: RegexNode, _ pattern: String) throws(RegexError) {
    switch node {
    case .set(let set):
      if let scalar = set.only { return try append(.scalar(scalar), pattern) }
      sets.append(set)
      try append(.take(sets.count - 1), pattern)
    case .assertion(let assertion): try append(.check(assertion), pattern)
    case .sequence(let parts):
      if parts.isEmpty { try append(.jump(instructions.count + 1), pattern) }
      for part in parts { try emit(part, pattern) }
    case .alternatives(let branches): try emit(alternatives: branches, pattern)
    case .repetition(let node, let from, let through): try emit(repetition: node, from, through, pattern)
    }
  }

  private mutating func emit(alternatives branches: [RegexNode], _ pattern: String) throws(RegexError) {
    var jumps: [Int] = []
    for (place, branch) in branches.enumerated() {
      let split = instructions.count
      let isLast = place == branches.count - 1
      if !isLast { try append(.jump(0), pattern) }
      try emit(branch, pattern)
      guard !isLast else { continue }
      jumps.append(instructions.count)
      try append(.jump(0), pattern)
      instructions[split] = .split(split + 1, instructions.count)
    }
    for jump in jumps { instructions[jump] = .jump(instructions.count) }
  }

  private mutating func emit(
    repetition node: RegexNode, _ from: Int, _ through: Int?, _ pattern: String
  ) throws(RegexError) {
    if from == 0, through == 0 { try append(.jump(instructions.count + 1), pattern) }
    for _ in 0..<from { try emit(node, pattern) }
    guard let through else {
      let split = instructions.count
      try append(.jump(0), pattern)
      try emit(node, pattern)
      try append(.jump(split), pattern)
      instructions[split] = .split(split + 1, instructions.count)
      return
    }
    var splits: [Int] = []
    for _ in from..<through {
      splits.append(instructions.count)
      try append(.jump(0), pattern)
      try emit(node, pattern)
    }
    for split in splits { instructions[split] = .split(split + 1, instructions.count) }
  }
}

/// Runs a program over a text: all reachable places of the program are followed at once, one character after the other,
/// so that the time is at most the product of both lengths.
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

  /// Returns true if any part of `text` matches. Every step costs. Throws if the budget is spent.
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

  /// Follows `places` and the start of the program up to instructions that take a character. Returns true if the end is
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

  /// Returns the instructions after those that take `scalar`.
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
