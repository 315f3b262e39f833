import Foundation
import Synchronization
import Testing

@testable import CEL

@Suite("Limits")
struct LimitTests {
  private static func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

  @Test("A text over a limit is refused")
  func size() {
    let model = StaffModel()
    #expect(
      model.outcome(of: "'" + Self.repeated("a", 16_384) + "'") == "1:1: the expression has more than 16384 bytes")
    #expect(model.outcome(of: Self.repeated("(", 65) + "1").contains("nested deeper than 64 levels"))
    #expect(model.outcome(of: "1" + Self.repeated("+1", 200)).contains("tree is higher than 128 levels"))
    #expect(model.outcome(of: "this" + Self.repeated(".a", 5_000)).contains("tree is higher than 128 levels"))
    #expect(model.outcome(of: Self.repeated("-", 5_000) + "name").contains("tree is higher than 128 levels"))
    #expect(model.outcome(of: "[" + Self.repeated("1,", 8_000) + "2.5]") != "")
    var limits = ExpressionLimits()
    limits.nodes = 10
    #expect(model.outcome(of: "[1,2,3,4,5,6,7,8,9,0]", limits: limits).contains("more than 10 nodes"))
  }

  @Test("Operands of && and of || may be as many as there is text for")
  func wide() {
    #expect(StaffModel().outcome(of: "open" + Self.repeated("&&open", 2_000)) == "true")
    #expect(StaffModel().outcome(of: "false" + Self.repeated("||false", 2_000)) == "false")
  }

  @Test(
    "An evaluation that costs too much is stopped, and nothing absorbs that",
    arguments: [
      "[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, a + b + c)))",
      "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, true))) || true",
      "true && [1,2,3].exists(x, [1,2,3,4,5,6,7,8,9,10,11,12].map(y, [1,2,3,4,5,6,7,8,9].map(c, c)).size() > 1000)",
      "['aaaaaaaa'].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a)",
      "['aaaaaaaa'].map(a, a.replace('a', a)).map(a, a.replace('a', a)).map(a, a.replace('a', a))",
      "[[1,2,3,4,5,6,7,8]].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).size()",
      "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a?){50}(a*)*b')",
      "['aaaaaaaa'].map(a, '%s%s%s%s%s%s%s%s'.format([a,a,a,a,a,a,a,a])).map(a, [a,a,a,a,a,a,a,a].join(a))"
        + ".map(a, [a,a,a].join(a))",
    ])
  func cost(_ text: String) throws {
    var limits = ExpressionLimits()
    limits.cost = 500
    #expect(StaffModel().outcome(of: text, limits: limits) == "error: costLimitExceeded")
  }

  @Test("Regular expressions do not take exponential time")
  func regex() {
    let text = Self.repeated("a", 500)
    #expect(StaffModel().outcome(of: "'\(text)'.matches('^(a+)+$')") == "true")
    #expect(StaffModel().outcome(of: "'\(text)'.matches('^(a|aa)+b$')") == "false")
    #expect(StaffModel().outcome(of: "'a'.matches('((a{100}){100}){100}')").contains("the pattern is too large"))
    #expect(
      StaffModel().outcome(of: "'a'.matches('((((){1000}){1000}){1000}){1000}')").contains("the pattern is too large"))
    #expect(StaffModel().outcome(of: "'a'.matches('\(Self.repeated("(", 100))')").contains("nested too deep"))
  }

  @Test("Types, lists and key paths do not grow without end from one comprehension to the next")
  func growth() {
    let model = StaffModel()
    #expect(model.outcome(of: "[1]" + Self.repeated(".map(y, [[[[y]]]])", 50)).contains("nested too deep"))
    // The value shares its parts, so that it takes no room; comparing it does take the time of the whole.
    let doubled = "[1]" + Self.repeated(".map(y, [y, y])", 60)
    #expect(model.outcome(of: "size(\(doubled))") == "1")
    #expect(model.outcome(of: "\(doubled) == \(doubled)") == "error: costLimitExceeded")
    #expect(model.outcome(of: "[1]" + Self.repeated(".map(y, {y: y})", 60)).contains("a key of a map cannot be"))
    #expect(model.outcome(of: "[1]" + Self.repeated(".map(y, {'a': y, 'b': y})", 30) + " == [1]") != "")
    let paths = "[head]" + Self.repeated(".map(e, open ? e.manager : e.reports[0])", 30)
    #expect(model.outcome(of: paths).contains("reads too many key paths"))
  }

  @Test("The depth of evaluation is bounded in all, and given back")
  func depth() throws {
    let checked = try Expression(parsing: "1 + 2").checked(in: StaffModel())
    var budget = EvaluationBudget(cost: 100, depth: 5)
    #expect(Canonical.text(checked.evaluate(StaffModel(), budget: &budget)) == "error: depthLimitExceeded")
    #expect(budget.remainingDepth == 5)
    budget = EvaluationBudget(cost: 100, depth: 6)
    #expect(Canonical.text(checked.evaluate(StaffModel(), budget: &budget)) == "3")
    #expect(budget.remainingDepth == 6 && budget.remainingCost == 97)
  }

  @Test("The deepest expressions do not overflow the small stack of a server's thread")
  func stack() {
    let deep = [
      Self.repeated("(", 63) + "1" + Self.repeated(")", 63), Self.repeated("[", 63) + "1" + Self.repeated("]", 63),
      "size(" + Self.repeated("[", 62) + "1" + Self.repeated("]", 62) + ")", Self.repeated("-", 126) + "counts[0]",
      Self.repeated("open ? 1 : ", 62) + "2", Self.repeated("{'a': ", 62) + "1" + Self.repeated("}", 62),
      "1" + Self.repeated(" + 1", 127), Self.repeated("int(", 62) + "1" + Self.repeated(")", 62),
      "this" + Self.repeated(".parent", 126),
      Self.repeated("[1].map(x, ", 62) + "1" + Self.repeated(")", 62),
      Self.repeated("1 in [", 62) + "1" + Self.repeated("]", 62),
      "counts" + Self.repeated(".filter(x, x == 3)", 126),
      Self.repeated("!(open && ", 62) + "open" + Self.repeated(")", 62),
      Self.repeated("[1].all(x, ", 62) + "open" + Self.repeated(")", 62),
      "'a'.matches('\(Self.repeated("(", 50))a\(Self.repeated(")*", 50))')",
      Self.repeated("sum([", 31) + "1" + Self.repeated("])", 31),
      Self.repeated("'%s'.format([", 31) + "1" + Self.repeated("])", 31),
      "[1]" + Self.repeated(".map(y, [y])", 60) + " == [1]" + Self.repeated(".map(y, [y])", 60),
      Self.repeated("(", 10_000), Self.repeated("!", 10_000), Self.repeated("[", 10_000),
      Self.repeated("a.", 8_000) + "a",
    ]
    let outcomes = Mutex<[String]>([])
    let isDone = DispatchSemaphore(value: 0)
    let thread = Thread {
      let model = StaffModel()
      for text in deep { outcomes.withLock { $0.append(NestedModel(model).outcome(of: text)) } }
      isDone.signal()
    }
    #if DEBUG
      // Frames that are not optimised are several times as large.
      thread.stackSize = 8 * 512 * 1_024
    #else
      thread.stackSize = 512 * 1_024
    #endif
    thread.start()
    isDone.wait()
    #expect(outcomes.withLock { $0.count } == deep.count)
  }
}
