import Testing

@testable import CEL

@Suite("Evaluation over a model")
struct EvaluationTests {
  @Test(
    "An expression has its value",
    arguments: [
      // Keys and objects.
      ("name", "'Sales'"), ("this.name", "'Sales'"), ("head.name + '!'", "'Ann!'"), ("parent", "null"),
      ("parent == null", "true"), ("head == null", "false"), ("head == 'Employee/1'", "true"),
      ("'Employee/2' == head", "false"), ("head != 'Employee/1'", "false"), ("this == employees[0].department", "true"),
      ("head in employees", "true"), ("'Employee/3' in employees", "true"), ("'Employee/9' in employees", "false"),
      ("head in ['Employee/1', 'Employee/2']", "true"), ("parent.name", "error: noSuchKey"),
      ("has(head.manager)", "false"), ("has(employees[1].manager.name)", "true"), ("type(head)", "type(Employee)"),
      ("employees[2].manager.name", "error: noSuchKey"), ("employees.size() == 3", "true"), ("head", "Employee/1"),
      ("employees == employees", "true"),
      // JSON.
      ("settings.limit + 1", "6"), ("settings['limit']", "5"), ("has(settings.other)", "false"),
      ("settings.other", "error: noSuchKey"), ("settings.limit.deeper", "error: noSuchKey"),
      // Nulls.
      ("employees[2].salary * 2.0", "error: noSuchOverload"), ("employees[2].salary == null", "true"),
      ("employees[2].salary < 1.0", "error: noSuchOverload"), ("-employees[2].age", "-20"),
      ("open || employees[2].salary < 1.0", "true"), ("open && employees[2].salary < 1.0", "error: noSuchOverload"),
      ("employees[2].salary == null ? 0.0 : employees[2].salary", "0.0"),
      // Comprehensions.
      ("employees.filter(e, e.age > 25).map(e, e.name)", "['Ann', 'Bob']"),
      ("employees.map(e, e.age < 35, e.name)", "['Bob', 'Cyd']"), ("employees.exists(e, e.salary > 50.0)", "true"),
      ("employees.all(e, e.salary > 50.0)", "false"), ("employees.all(e, e.salary >= 0.2)", "error: noSuchOverload"),
      ("employees.exists_one(e, e.age == 30)", "true"),
      ("employees.map(e, employees.filter(f, f.age < e.age).size())", "[2, 1, 0]"),
      ("employees.filter(e, e.age > 25)[1].manager.name", "'Ann'"), ("{'b': 1, 'a': 2}.map(k, k)", "['b', 'a']"),
      ("[1, 2].map(e, [3].map(e, e + 1)[0] + e)", "[5, 6]"),
    ])
  func value(_ text: String, _ expected: String) {
    #expect(StaffModel().outcome(of: text) == expected)
  }

  @Test(
    "sum, avg, min and max have their values",
    arguments: [
      ("sum(ratings)", "1.0"), ("sum(counts)", "7"), ("avg(counts)", "2.3333333333333335"), ("min(counts)", "3"),
      ("max(counts)", "4"), ("sum(employees.map(e, e.salary))", "100.3"), ("avg(ratings)", "0.1"),
      ("sum([])", "0"), ("sum([]) == 0.0", "true"), ("sum(ratings.filter(r, r > 1.0))", "0.0"),
      ("sum(ratings.filter(r, r > 1.0)) * 1.5", "0.0"), ("sum(counts.filter(c, c == null))", "0"),
      ("sum([1u, 2u])", "3u"), ("sum([1, 2u])", "3.0"), ("sum([1, 2.5])", "3.5"), ("sum([null, null])", "0"),
      ("sum([9223372036854775807, 1])", "error: outOfRange"),
      ("sum([9223372036854775807, 1, -1])", "9223372036854775807"),
      ("sum([18446744073709551615u, 1u])", "error: outOfRange"), ("avg([])", "null"), ("min([])", "null"),
      ("max([])", "null"), ("min([null])", "null"), ("avg([null, null])", "0.0"), ("avg([1, 2])", "1.5"),
      ("min(['b', 'a'])", "'a'"), ("max([duration('1s'), duration('2s')])", "duration(2s)"),
      ("max([timestamp(1), timestamp(0)])", "timestamp(1970-01-01T00:00:01Z)"), ("min([2, 1.0, 1, 1u])", "1"),
      ("max([1, 1u, 1.0])", "1.0"), ("min(dyn([1, 'a']))", "error: noSuchOverload"),
      ("sum(dyn(['a']))", "error: noSuchOverload"), ("sum(dyn(1))", "error: noSuchOverload"),
      ("min([0.0 / 0.0])", "error: invalidArgument"), ("sum([1.0 / 0.0, -1.0 / 0.0])", "nan"),
      ("max(employees.map(e, e.hired))", "timestamp(2001-09-09T01:46:40Z)"),
      ("sum([0.1, 0.2, 0.3]) == 0.6", "true"), ("avg([1e308, 1e308])", "1e+308"), ("sum([1e308, 1e308])", "inf"),
    ])
  func aggregate(_ text: String, _ expected: String) {
    #expect(StaffModel().outcome(of: text) == expected)
  }

  @Test(
    "Functions, conversions and texts have their values",
    arguments: [
      ("string(0.1)", "'0.1'"), ("string(1.0)", "'1'"), ("string(1e21)", "'1e+21'"),
      ("string(1e20)", "'100000000000000000000'"),
      ("string(1e-7)", "'1e-7'"), ("string(0.000001)", "'0.000001'"), ("string(-1.5e300)", "'-1.5e+300'"),
      ("string(1.0 / 0.0)", "'Infinity'"), ("string(duration('1.5s'))", "'1.5s'"),
      ("duration('-0.5s')", "duration(-0.5s)"),
      ("duration('1h45m47s').getMinutes()", "105"), ("duration('1234ms').getMilliseconds()", "234"),
      ("duration('1')", "error: invalidArgument"), ("duration('5\u{301}s')", "error: invalidArgument"),
      ("duration('')", "error: invalidArgument"),
      ("duration('0')", "duration(0s)"),
      ("timestamp('2000-02-30T00:00:00Z')", "error: invalidArgument"),
      ("timestamp('2024-02-29T12:00:00.25+02:00')", "timestamp(2024-02-29T10:00:00.25Z)"),
      ("timestamp('2024-07-01T12:00:00Z').getHours('Europe/Berlin')", "14"),
      ("timestamp('2024-01-01T12:00:00Z').getHours('Europe/Berlin')", "13"),
      ("timestamp(0).getHours('No/Where')", "error: invalidArgument"),
      ("timestamp(0).getHours('../x')", "error: invalidArgument"),
      ("timestamp('0001-01-01T00:00:00Z').getDayOfWeek()", "1"),
      ("timestamp('9999-12-31T00:00:00Z').getDayOfYear()", "364"),
      ("'a,b,,c'.split(',')", "['a', 'b', '', 'c']"), ("'abc'.split('')", "['a', 'b', 'c']"), ("''.split('')", "[]"),
      ("''.split(',')", "['']"), ("'a,b,c'.split(',', 2)", "['a', 'b,c']"), ("'abc'.split('', 2)", "['a', 'bc']"),
      ("'abc'.replace('', '-')", "'-a-b-c-'"), ("'abc'.replace('', '-', 2)", "'-a-bc'"),
      ("'aaa'.replace('a', 'b', 2)", "'bba'"),
      ("'aaa'.replace('a', 'b', 0)", "'aaa'"), ("'aaa'.replace('aa', 'b')", "'ba'"),
      ("'e\\u0301' == '\\u00e9'", "false"),
      ("{'e\\u0301': 1, '\\u00e9': 2}.size()", "2"), ("'\\u212b' < '\\u00c5'", "false"), ("size('e\\u0301')", "2"),
      ("'%5'.format([1])", "error: invalidArgument"), ("'%.101f'.format([1])", "error: invalidArgument"),
      ("'%x'.format([-255])", "'-ff'"), ("'%s'.format([{'b': 1, 'a': [2]}])", "'{a: [2], b: 1}'"),
      ("dyn([1, 2])[5]", "error: invalidArgument"), ("-(-9223372036854775807 - 1)", "error: outOfRange"),
      ("[1] + [2.0] + ['a']", "[1, 2.0, 'a']"), ("1 == 1.0 && 1u == 1.0", "true"), ("[1, 'a'] == [1.0, 'a']", "true"),
      ("type(1) == int && type(null) == null_type", "true"), ("'a'.matches('^b?a$')", "true"),
      ("['a', 'b'].exists(p, 'xbx'.matches(p))", "true"),
      ("'x'.matches(name.substring(0, 0) + '(')", "error: invalidArgument"),
    ])
  func function(_ text: String, _ expected: String) {
    #expect(StaffModel().outcome(of: text) == expected)
  }
}
