import TestKit
import Testing

@testable import CEL

@Suite("Any text")
struct ExpressionFuzzTests {
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

  /// Parses, checks and evaluates a text. Returns a description of the first fault, or nil if there is none.
  private static func complaint(_ text: String, _ model: StaffModel) -> String? {
    var limits = ExpressionLimits()
    limits.cost = costLimit
    let expression: Expression
    do { expression = try Expression(parsing: text, limits: limits) } catch { return complaint(error, text) }
    var candidates: [CheckedExpression] = []
    do throws(ExpressionError) { candidates.append(try expression.checked(in: model)) } catch {
      if let complaint = complaint(error, text) { return complaint }
    }
    do throws(ExpressionError) { candidates.append(try expression.unchecked(in: model)) } catch {
      if let complaint = complaint(error, text) { return complaint }
    }
    for candidate in candidates {
      var budget = EvaluationBudget(limits)
      let result = candidate.evaluate(model, budget: &budget)
      if budget.remainingCost < 0 { return "it cost \(-budget.remainingCost) steps too many" }
      if budget.remainingDepth != limits.evaluationDepth { return "it left \(budget.remainingDepth) levels" }
      if let complaint = difference(result, candidate, model, limits) { return complaint }
    }
    return nil
  }

  /// Describes an error's position that is outside the text; nil if the position is inside.
  private static func complaint(_ error: ExpressionError, _ text: String) -> String? {
    let count = text.unicodeScalars.count
    guard (0...count).contains(error.offset), error.line >= 1, error.column >= 1 else {
      return "the mistake is at \(error.offset) of \(count): \(error)"
    }
    return nil
  }

  /// Compares the value with that of the extracted functions, folded one contribution after the other. Describes the
  /// difference; nil if there is none.
  private static func difference(
    _ result: Result<ExpressionValue, EvaluationError>, _ checked: CheckedExpression, _ model: StaffModel,
    _ limits: ExpressionLimits
  ) -> String? {
    let (rest, functions) = checked.extractingCollectionFunctions()
    guard !functions.isEmpty, let values = FoldedFunction.values(functions, model) else { return nil }
    var folded = model
    folded.functionValues = values
    var budget = EvaluationBudget(limits)
    let other = rest.evaluate(folded, budget: &budget)
    for case .failure(let error) in [result, other] where error.isLimit { return nil }
    let texts = (Canonical.text(result), Canonical.text(other))
    return texts.0 == texts.1 ? nil : "it is \(texts.0), and folded \(texts.1)"
  }

  @Test("Any text parses, checks and evaluates to a value or an error within its cost, or has a mistake at its place")
  func anyText() {
    let model = StaffModel()
    let failure = Fuzzer("expressions", rounds: 2_000).run(texts: Mutator(Self.seeds, pieces: Self.pieces)) { text in
      Self.complaint(text, model)
    }
    #expect(failure == nil, "\(failure?.description ?? "")")
  }
}
