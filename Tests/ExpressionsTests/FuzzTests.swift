import Foundation
import Seeding
import Testing

@testable import Expressions

@Suite("Any text")
struct FuzzTests {
  private static let pieces = [
    "a", "this", "name", "employees", "head", "settings", "ratings", "counts", "budget", "e", "x", "salary", "age",
    "tags", "manager", "founded", ".", ",", "(", ")", "[", "]", "{", "}", "?", ":", "+", "-", "*", "/", "%", "!", "==",
    "!=", "<", "<=", ">", ">=", "&&", "||", " in ", "true", "false", "null", "1", "2u", "1.5", "'x'", "b'y'", "''",
    "9223372036854775807", "-9223372036854775808", "18446744073709551615u", "1e308", "0", "size(", "sum(", "avg(",
    "min(", "max(", "has(", "dyn(", "int(", "uint(", "double(", "string(", "timestamp(", "duration(", "type(",
    ".all(e,", ".exists(x,", ".map(e,", ".filter(x,", ".exists_one(e,", ".size()", ".matches(", ".split(", ".join(",
    ".replace(", ".format(", ".substring(", ".indexOf(", ".charAt(", ".reverse()", ".getHours(", "'(a|b)*c{2,5}'",
    "'2009-02-13T23:31:30Z'", "'1h'", "'%s %d %.3f %x'", "'Europe/Berlin'", "\"\\u00e9\"", "r'\\d'", "'''", "`", "\\",
    "é", "\u{1F431}", "\n", "//", "strings.quote(", "google.protobuf.Timestamp", "//", "lastIndexOf(", ".trim()",
  ]

  private static let seeds = [
    "sum(employees.map(e, e.salary * 1.1)) > budget ? 'over' : name",
    "employees.filter(e, e.age > 30 && e.name.startsWith('A')).map(e, e.name).join(', ')",
    "employees.all(e, e.salary > 1.0 || has(e.manager.name)) && size(counts) in [1, 2, 3]",
    "[1, 2, 3].map(x, [x, x * 2]).filter(y, y[0] > 1).exists(z, z[1] == 4)",
    "{'a': 1, 'b': [1, 2]}['b'].map(x, {x: x}).size() + counts[0]",
    "'%s and %d: %.2f'.format([name, size(employees), avg(ratings)])",
    "name.matches('^(S|s)a{1,3}l.s$') && timestamp('2009-02-13T23:31:30Z').getHours('Europe/Berlin') == 0",
    "'a-b-c'.split('-').map(p, p.replace('a', 'bb', 1).upperAscii().reverse()).join() + string(1.5)",
    "min(employees.map(e, e.age)) == max([1, 2u, 3.0]) || head.manager == null || 'Employee/1' in employees",
    "timestamp('2009-02-13T23:31:30Z') + duration('1h30m') - timestamp(0) > duration('-1.5s')",
    "settings.limit + settings['limit'] * 2 - int('5') % 3",
    "strings.quote(name) + 'é'.charAt(0) + string(b'abc') + \"\\u00e9\".substring(0, 1)",
  ]

  private static let costLimit = 20_000

  /// A text of random pieces, or a text of `seeds` with random changes.
  private static func text(_ random: inout SplitMix64) -> String {
    guard Bool.random(using: &random), var text = seeds.randomElement(using: &random).map(Array.init) else {
      let count = Int.random(in: 1...40, using: &random)
      return (0..<count).compactMap { _ in pieces.randomElement(using: &random) }.joined()
    }
    for _ in 0..<Int.random(in: 1...4, using: &random) where !text.isEmpty {
      let start = Int.random(in: 0..<text.count, using: &random)
      let end = min(text.count, start + Int.random(in: 0...12, using: &random))
      let piece = Array(pieces.randomElement(using: &random) ?? "")
      switch Int.random(in: 0..<4, using: &random) {
      case 0: text.removeSubrange(start..<end)
      case 1: text.replaceSubrange(start..<end, with: piece)
      case 2: text.insert(contentsOf: text[start..<end], at: Int.random(in: 0...text.count, using: &random))
      default: text.insert(contentsOf: piece, at: start)
      }
    }
    return String(text)
  }

  /// Parses, checks and evaluates. Gives whether it could be checked.
  private static func run(_ text: String, _ model: StaffModel) -> Bool {
    var limits = ExpressionLimits()
    limits.cost = costLimit
    guard let expression = try? Expression(parsing: text, limits: limits) else { return false }
    let checked = try? expression.checked(in: model)
    for candidate in [checked, try? expression.unchecked(in: model)] {
      guard let candidate else { continue }
      var budget = EvaluationBudget(limits)
      let result = candidate.evaluate(model, budget: &budget)
      #expect(budget.remainingCost >= 0 && budget.remainingDepth == limits.evaluationDepth)
      compare(result, candidate, model, limits, text)
    }
    return checked != nil
  }

  /// Extracted functions, folded one contribution after the other, make the same value.
  private static func compare(
    _ result: Result<ExpressionValue, EvaluationError>, _ checked: CheckedExpression, _ model: StaffModel,
    _ limits: ExpressionLimits, _ text: String
  ) {
    let (rest, functions) = checked.extractingCollectionFunctions()
    guard !functions.isEmpty, let values = FoldedFunction.values(functions, model) else { return }
    var folded = model
    folded.functionValues = values
    var budget = EvaluationBudget(limits)
    let other = rest.evaluate(folded, budget: &budget)
    for case .failure(let error) in [result, other] where error.isLimit { return }
    #expect(Canonical.text(result) == Canonical.text(other), "\(text)")
  }

  @Test("Any text parses, checks and evaluates to a value or an error within its cost")
  func anyText() {
    let seconds = ProcessInfo.processInfo.environment["KEYWAY_FUZZ_SECONDS"].flatMap(Double.init) ?? 1
    print("Fuzzing for \(seconds) s with KEYWAY_TEST_SEED=\(seed)")
    var random = SplitMix64(seed: seed)
    let model = StaffModel()
    let end = ContinuousClock.now.advanced(by: .seconds(seconds))
    var (rounds, checked) = (0, 0)
    while ContinuousClock.now < end {
      if FuzzTests.run(FuzzTests.text(&random), model) { checked += 1 }
      rounds += 1
    }
    print("\(rounds) texts, \(checked) of them without a fault")
  }
}
