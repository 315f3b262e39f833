import Testing

@testable import CEL

@Suite("Faults of expressions")
struct ErrorTests {
  @Test(
    "A fault has its place and says what is wrong",
    arguments: [
      ("", "1:1: the expression ends too early"), ("1 +", "1:4: the expression ends too early"),
      ("a\n = 1", "2:2: unexpected character '='; to compare, write '=='"),
      ("(1", "1:3: expected ')' instead of the end of the expression"),
      ("[1, 2", "1:6: expected ']' instead of the end of the expression"),
      ("'é' +\n  'abc", "2:3: this string does not end"),
      ("'\\q'", "1:2: '\\q' is not an escape sequence"), ("'\\ud800'", "1:2: U+D800 is not a Unicode scalar"),
      ("b'\\u00e9'", "1:3: '\\u' is not an escape sequence of bytes"),
      ("9223372036854775808", "1:1: the integer 9223372036854775808 is out of range"),
      ("-9223372036854775809", "1:1: the integer -9223372036854775809 is out of range"),
      ("0x1FFFFFFFFFFFFFFFF", "1:1: the integer 0x1FFFFFFFFFFFFFFFF is out of range"),
      ("for", "1:1: 'for' is a reserved word"),
      ("a.in", "1:3: expected a key instead of 'in'"), ("f(1,)", "1:5: unexpected ')'"), ("1 2", "1:3: unexpected '2'"),
      ("has(name)", "1:5: has() takes one selection, such as has(a.b)"),
      ("[1].all(1, true)", "1:9: the first argument of all() must be the name of a variable"),
      ("Type{a: 1}", "1:5: message literals are not supported"),
      ("a.?b", "1:3: optional selection is not supported"), ("é", "1:1: unexpected character U+E9"),
      // Types.
      ("1 * 2.0", "1:3: no such overload: int * double; write double(…) around the int"),
      ("1 in 2", "1:3: no such overload: int in int"),
      ("2u + 1", "1:4: no such overload: uint + int; write int(…) around the uint"),
      ("5.0 % 2", "1:5: no such overload: double % int"), ("salry", "1:1: undeclared reference to 'salry'"),
      ("open & open", "1:6: unexpected character '&'; to join conditions, write '&&'"),
      ("open | open", "1:6: unexpected character '|'; to join conditions, write '||'"),
      ("employees[0].salry", "1:14: Employee has no key 'salry'"), ("name + 1", "1:6: no such overload: string + int"),
      ("head == 1", "1:6: no such overload: Employee == int"),
      ("head < this", "1:6: no such overload: Employee < Department"),
      ("name == 1", "1:6: no such overload: string == int"),
      ("employees < employees", "1:11: no such overload: list(Employee) < list(Employee)"),
      ("nosuch(1)", "1:1: undeclared function 'nosuch'"),
      ("contains(name, 'a')", "1:1: undeclared function 'contains'; it is called as value.contains()"),
      ("name.sum()", "1:6: undeclared function 'sum'; it is called as sum(value)"),
      ("sum(name)", "1:1: no such overload: sum(string)"),
      ("sum(employees)", "1:1: no such overload: sum(list(Employee))"),
      ("name.startsWith(1)", "1:6: no such overload: string.startsWith(int)"),
      ("size(1, 2)", "1:1: no such overload: size(int, int)"),
      ("name && open", "1:1: an operand of && must be a bool, not string"),
      ("name ? 1 : 2", "1:1: the condition of ?: must be a bool, not string"),
      ("open ? 1 : 'a'", "1:6: no such overload: bool ? int : string"),
      ("employees.filter(e, e.age)", "1:23: the condition of filter() must be a bool, not int"),
      ("name.map(c, c)", "1:1: map() takes a list or a map, not string"),
      ("name[0]", "1:5: no such overload: string[int]"),
      ("!name", "1:1: no such overload: !string"), ("-name", "1:1: no such overload: -string"),
      ("{1.5: 2}", "1:2: a key of a map cannot be a double"),
      ("name.first", "1:6: string has no key 'first'"), ("1 in name", "1:3: no such overload: int in string"),
      ("name.matches('(')", "1:14: pattern '(', character 2: a group is not closed"),
      ("e + [1].map(e, e)[0]", "1:1: undeclared reference to 'e'"),
    ])
  func fault(_ text: String, _ expected: String) {
    #expect(StaffModel().outcome(of: text) == expected)
  }

  @Test("Of several faults, the first in the text is told")
  func several() throws {
    let error = try #require(throws: ExpressionError.self) {
      _ = try Expression(parsing: "a + b.c == 1 * 2.0\n&& name.x").checked(in: StaffModel())
    }
    #expect(error.description == "1:1: undeclared reference to 'a'")
    #expect((error.offset, error.line, error.column) == (0, 1, 1))
  }

  @Test(
    "The type of an expression is known",
    arguments: [
      ("1 + 1", "int"), ("budget * 2.0", "double"), ("employees.map(e, e.name)", "list(string)"), ("settings.x", "dyn"),
      ("settings.x + 1.0", "double"), ("settings.x + settings.y", "dyn"), ("head.manager", "Employee"),
      ("head == null", "bool"),
      ("employees.filter(e, true)", "list(Employee)"), ("sum(employees.map(e, e.age))", "int"),
      ("sum(ratings)", "double"),
      ("avg(counts)", "double"), ("min(employees.map(e, e.name))", "string"), ("founded - founded", "duration"),
      ("founded + duration('1s')", "timestamp"), ("open ? head : null", "Employee"), ("[1, 'a']", "list(dyn)"),
      ("{'a': 1}", "map(string, int)"),
      ("[1, null]", "list(int)"), ("counts + [1]", "list(int)"), ("type(1)", "type"), ("sum(settings.x)", "dyn"),
      ("name.split(',')", "list(string)"),
      ("settings.x < 1", "bool"), ("employees[0].reports[0].age", "int"), ("open ? settings : 1", "dyn"),
    ])
  func type(_ text: String, _ expected: String) throws {
    #expect(try Expression(parsing: text).checked(in: StaffModel()).type.description == expected)
  }
}
