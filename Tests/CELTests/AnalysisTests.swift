import Testing

@testable import CEL

@Suite("Analysis")
struct AnalysisTests {
  @Test(
    "The analysis finds the key paths that an expression may read",
    arguments: [
      ("1 + 2", "{}"), ("name", "{name}"), ("this.name", "{name}"), ("this", "{}"),
      ("head.manager.name", "{head{manager{name}}}"),
      ("sum(employees.map(p, p.age * p.manager.age))", "{employees[{age, manager{age}}]}"),
      ("open ? head.name : parent.name", "{head{name}, open, parent{name}}"),
      ("(open ? head : head.manager).name", "{head{manager{name}, name}, open}"),
      ("employees.filter(e, e.salary > 1.0)[0].name", "{employees[{name, salary}]}"),
      ("has(head.manager)", "{head{manager}}"),
      ("employees.map(e, e.manager).map(m, m.name)", "{employees[{manager{name}}]}"),
      ("size(employees)", "{employees}"),
      ("[head, parent.head].map(h, h.age)", "{head{age}, parent{head{age}}}"), ("{'a': head}.a.name", "{head{name}}"),
      ("{'a': head}['a'].name", "{head{name}}"),
      ("employees.all(e, e.reports.exists(r, r.age > e.age))", "{employees[{age, reports[{age}]}]}"),
      ("(employees + head.reports).map(e, e.name)", "{employees[{name}], head{reports[{name}]}}"),
      ("settings.a.b", "{settings{a{b}}}"),
      ("employees.exists(e, true)", "{employees[{}]}"), ("dyn(head).name", "{head{name}}"),
      ("name.matches('a') && open", "{name, open}"),
      ("employees[counts[0]].name", "{counts[{}], employees[{name}]}"), ("[1].map(name, name)", "{}"),
      ("this.employees[0].name", "{employees[{name}]}"),
      ("head == 'Employee/1' || 'Employee/2' in employees", "{employees, head}"),
      ("employees.map(e, e)[0].department.name", "{employees[{department{name}}]}"),
      ("type(1) == int", "{}"), ("[[head]].map(x, x[0].age)", "{head{age}}"),
      ("employees.map(e, e.age > 1, e.manager)[0].name", "{employees[{age, manager{name}}]}"),
    ])
  func reads(_ text: String, _ expected: String) throws {
    #expect(try Expression(parsing: text).checked(in: StaffModel()).reads.description == expected)
  }

  @Test(
    "Collection functions are found, and what remains reads only the rest",
    arguments: [
      ("sum(ratings)", ["sum ratings 0 - double {}"], "{}"),
      ("size(employees) + 1", ["size employees 0 - int {}"], "{}"),
      ("employees.size()", ["size employees 0 - int {}"], "{}"),
      ("this.employees.size()", ["size employees 0 - int {}"], "{}"),
      (
        "sum(employees.map(e, e.age * e.manager.age)) > settings.x", ["sum employees 0 + int {age, manager{age}}"],
        "{settings{x}}"
      ),
      ("avg(employees.map(e, e.age > 1, e.salary))", ["avg employees 1 + double {age, salary}"], "{}"),
      ("size(employees.filter(e, e.age > 1).filter(f, f.name == ''))", ["size employees 2 - int {age, name}"], "{}"),
      ("max(employees.filter(e, e.age > 1).map(f, f.name))", ["max employees 1 + string {age, name}"], "{}"),
      ("employees.all(e, e.reports.exists(r, r.age > e.age))", ["all employees 0 + bool {age, reports[{age}]}"], "{}"),
      ("head.reports.exists_one(e, e.age > 1)", ["exists_one head.reports 0 + bool {age}"], "{}"),
      (
        "sum(employees.map(e, e.age)) / size(employees)", ["sum employees 0 + int {age}", "size employees 0 - int {}"],
        "{}"
      ),
      // Functions that stay: the body is not closed, the list is not at a path from the root, or the value is not a
      // list.
      ("employees.exists(e, e.age > counts[0])", [], "{counts[{}], employees[{age}]}"),
      ("employees.exists(e, e.name == this.name)", [], "{employees[{name}], name}"),
      ("employees.map(e, size(e.reports))", [], "{employees[{reports}]}"),
      ("employees.map(e, e.age + size(employees))", ["size employees 0 - int {}"], "{employees[{age}]}"),
      ("employees.map(x, employees.all(e, e.age > x.age))", [], "{employees[{age}]}"),
      ("employees.filter(e, e.age > 1).all(e, true)", [], "{employees[{age}]}"), ("size(name)", [], "{name}"),
      ("size(settings)", [], "{settings}"),
      ("[1].all(x, true)", [], "{}"), ("sum(employees[0].reports.map(r, r.age))", [], "{employees[{reports[{age}]}]}"),
      ("employees.all(e, sum(counts) > 3)", ["sum counts 0 - int {}"], "{employees[{}]}"),
      ("[1].map(x, employees.exists(e, strings.quote(e.name) == 'a'))", ["exists employees 0 + bool {name}"], "{}"),
    ] as [(String, [String], String)])
  func extraction(_ text: String, _ expected: [String], _ rest: String) throws {
    let checked = try Expression(parsing: text).checked(in: StaffModel())
    let (remaining, functions) = checked.extractingCollectionFunctions()
    let shown = functions.map { function in
      let path = function.path.joined(separator: ".")
      let transform = function.transform == nil ? "-" : "+"
      return "\(function.function.rawValue) \(path) \(function.filters.count) \(transform) \(function.resultType) "
        + function.elementReads.description
    }
    #expect(shown == expected)
    #expect(remaining.reads.description == rest)
  }

  @Test(
    "Folding contributions gives what evaluation at once gives",
    arguments: [
      "sum(employees.map(e, e.salary)) * 2.0", "sum(ratings) + sum(employees.map(e, e.age > 100, e.salary))",
      "avg(counts)",
      "min(employees.map(e, e.name)) + max(employees.map(e, e.name))",
      "size(employees.filter(e, e.age > 25).map(f, f.name)) + size(counts)",
      "employees.all(e, e.salary > 50.0)", "employees.exists(e, e.salary > 50.0)",
      "employees.exists_one(e, e.age > 35)",
      "[1, 2].map(x, employees.exists(e, e.tags.exists(t, t == 'a')) ? x : 0)", "head.reports.all(e, false)",
      "min(head.reports.map(e, e.age))",
      "size(employees) == 3 && sum(counts) == 7",
    ])
  func folding(_ text: String) throws {
    let model = StaffModel()
    let checked = try Expression(parsing: text).checked(in: model)
    let (remaining, functions) = checked.extractingCollectionFunctions()
    #expect(!functions.isEmpty)
    var folded = model
    folded.functionValues = try #require(FoldedFunction.values(functions, model))
    var budget = EvaluationBudget(ExpressionLimits())
    #expect(Canonical.text(remaining.evaluate(folded, budget: &budget)) == model.outcome(of: text))
  }

  @Test(
    "A fault in one element is the function's, unless all or exists is decided by another",
    arguments: [
      ("sum(employees.map(e, e.salary * 2.0))", "error: noSuchOverload"),
      ("size(employees.filter(e, e.salary > 1.0))", "error: noSuchOverload"),
      ("employees.all(e, e.salary > 0.1)", "error: noSuchOverload"),
      ("employees.exists_one(e, e.salary > 1.0)", "error: noSuchOverload"),
    ])
  func faults(_ text: String, _ expected: String) throws {
    let model = StaffModel()
    let checked = try Expression(parsing: text).checked(in: model)
    let function = try #require(checked.extractingCollectionFunctions().functions.first)
    #expect(Canonical.text(FoldedFunction.value(function, model)) == expected)
    #expect(model.outcome(of: text) == expected)
  }
}
