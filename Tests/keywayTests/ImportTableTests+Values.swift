import ArgumentParser
import Testing

@testable import keyway

extension ImportTableTests {
  static let columns: [Case] = [
    Case("an id without a key of its name", "id,name\n1,a\n", "--id id", #"1 {"name":"a"}"#),
    Case("an id with a key of its name", "name,count\na,1\n", "--id name", #"a {"name":"a","count":1}"#),
    Case("an id that goes to another key", "id,count\n1,2\n", "--id id --map id=note", #"1 {"note":"1","count":2}"#),
    Case("an id of two columns, one without a key", "id,name\n1,a\n", "--id id --id name", #"1-a {"name":"a"}"#),
    Case(
      "an id that goes to a key that is not there", "id,name\n1,a\n", "--id id --map id=number",
      "1: the entity has no key number for the column id; it has \(keys). "
        + "--map id=KEY names another, --map id= leaves the column out"),
    Case(
      "another column without a key", "id,name\n1,a\n", "",
      "1: the entity has no key id for the column id; it has \(keys). "
        + "--map id=KEY names another, --map id= leaves the column out"),
    Case(
      "a column of a computed key", "name,total\na,1\n", "",
      "1: the key total is read-only. --map total= leaves the column out"),
  ]

  private static func unnamed(_ column: Int) -> String {
    "--map \(column)=KEY gives the column \(column) to a key, --map \(column)= leaves it out"
  }

  static let dialects: [Case] = [
    Case("columns without a name and without values", "name,,\na,,\nb,\"\",\n", "", #"{"name":"a"}"#, #"{"name":"b"}"#),
    Case(
      "a value in a column without a name", "name,,\na,,\nb,,x\n", "", #"{"name":"a"}"#,
      "3: the column 3 has no name, and the value x → \(unnamed(3))"),
    Case(
      "a column of numbers of rows, without a name", ",name\n0,a\n", "",
      "2: the column 1 has no name, and the value 0 → \(unnamed(1))"),
    Case("a column without a name that is left out", ",name\n0,a\n", "--map 1=", #"{"name":"a"}"#),
    Case("a column without a name that goes to a key", ",name\n0,a\n", "--map 1=count", #"{"count":0,"name":"a"}"#),
    Case("a column without a name that is the id", ",name\n0,a\n", "--id 1", #"0 {"name":"a"}"#),
    Case(
      "a column without a name beside one that is called so", ",1\nx,y\n", "--map 1=name",
      "2: the column 1 has no name, and the value x → \(unnamed(1))"),
    Case("more fields than names, without values", "name\na,,\n", "", #"{"name":"a"}"#),
    Case("more fields than names", "name\na,,x\n", "", "2: 3 fields, where the header has 1"),
    Case("fewer fields than names", "name,count\na\n", "", "2: 1 fields, where the header has 2"),
    Case(
      "fewer fields than columns, of which the last have no name", "name,count,,\na,1\n", "", #"{"name":"a","count":1}"#
    ),
    Case("no names at all", " ,,\nname,,\n", "", "1: the first record has no column names"),
    Case("a line that names the delimiter", "sep=;\r\nname;note\r\na,b;c\r\n", "", #"{"name":"a,b","note":"c"}"#),
    Case("a line that names a tabulator", "SEP=\t\nname\tnote\na\tb\n", "", #"{"name":"a","note":"b"}"#),
    Case("a line that names a comma", "sep=,\nname,note\na,b\n", "", #"{"name":"a","note":"b"}"#),
    Case(
      "a line that names another delimiter", "sep=,\nname;note\na;b\n", "--delimiter ;", #"{"name":"a","note":"b"}"#),
    Case("the line of a mistake below that line", "sep=;\ncount\nx\n", "", "3: count is not an integer of 64 bits: x"),
    Case(
      "a column whose name begins like that line", "sep=\na\n", "",
      "1: the entity has no key sep= for the column "
        + "sep=; it has \(keys). --map sep==KEY names another, --map sep== leaves the column out"),
    Case(
      "another delimiter than is read", "name;note\na;b\n", "--id name",
      "1: the header has no column name; it has name;note → --delimiter ';' splits the fields of the file"),
    Case(
      "tabulators", "name\tnote\na\tb\n", "",
      "1: the entity has no key name\tnote for the column name\tnote; it has \(keys). --map name\tnote=KEY names "
        + "another, --map name\tnote= leaves the column out → --delimiter tab splits the fields of the file"),
    Case(
      "what is before a mistake of the file", "name\na\nb\"c\n", "", #"{"name":"a"}"#,
      "3: a quotation mark inside a field that does not begin with one"),
  ]

  static let values: [Case] = [
    values(
      "count", "whole numbers, however they are written", "", ("5", "5"), ("5.0", "5"), ("1e3", "1000"), ("-0.0", "0"),
      ("+7", "7"), (" 8 ", "8"), ("120e-1", "12"), ("1E+2", "100"), ("5.", "5"), ("007", "7"), ("", ""),
      ("9223372036854775807.0", "9223372036854775807"), ("-9223372036854775808", "-9223372036854775808"),
      ("922337203685477580.7e1", "9223372036854775807"), ("0e999999", "0")),
    values(
      "count", "what is not whole, or too large", "", ("5.5", "is not an integer of 64 bits: 5.5"),
      ("9223372036854775808", "is not an integer of 64 bits: 9223372036854775808"),
      ("1e19", "is not an integer of 64 bits: 1e19"), ("1e-1", "is not an integer of 64 bits: 1e-1"),
      ("1e", "is not an integer of 64 bits: 1e"), ("0x10", "is not an integer of 64 bits: 0x10"),
      ("1e99999999", "is not an integer of 64 bits: 1e99999999"), ("٣", "is not an integer of 64 bits: ٣"),
      ("5 %", "is not an integer of 64 bits: 5 %"), (".", "is not an integer of 64 bits: .")),
    values(
      "count", "signs between digits", "",
      (
        "1,000",
        "is not an integer of 64 bits: 1,000 → --decimal , reads 1,000 as 1, --thousands , reads 1,000 as 1000"
      ),
      ("5,0", "is not an integer of 64 bits: 5,0 → --decimal , reads 5,0 as 5"),
      ("1'000", "is not an integer of 64 bits: 1'000 → --thousands \"'\" reads 1'000 as 1000")),
    values(
      "price", "numbers", "", ("1.5", "1.5"), ("-2", "-2"), ("1e-3", "0.001"), (".5", "0.5"), ("1e300", "1e+300"),
      ("0.1", "0.1"), ("-0.0", "-0.0")),
    values(
      "price", "what is not a number", "", ("inf", "is not a number: inf"), ("1e999", "is not a number: 1e999"),
      ("0x1p3", "is not a number: 0x1p3"), ("--5", "is not a number: --5"), ("$5", "is not a number: $5"),
      ("nan", "is not a number: nan → \(null("nan"))"),
      ("3,5", "is not a number: 3,5 → --decimal , reads 3,5 as 3.5"),
      (
        "1.234,5", "is not a number: 1.234,5 → --decimal , --thousands . reads 1.234,5 as 1234.5"
      ),
      ("12,34,567", "is not a number: 12,34,567")),
    values(
      "price", "a decimal comma", "--decimal ,", ("3,5", "3.5"), ("3", "3"), ("1,5e3", "1500"),
      ("3.5", "is not a number: 3.5 → --decimal . reads 3.5 as 3.5"),
      ("1.234,5", "is not a number: 1.234,5 → --decimal , --thousands . reads 1.234,5 as 1234.5")),
    values(
      "price", "groups of digits", "--thousands ,", ("1,234.5", "1234.5"), ("1234.5", "1234.5"),
      ("-1,234,567", "-1234567"),
      ("1,23", "is not a number: 1,23 → --decimal , reads 1,23 as 1.23"),
      (",123", "is not a number: ,123 → --decimal , reads ,123 as 0.123")),
    values(
      "price", "a decimal comma and groups", "--decimal , --thousands .", ("1.234,5", "1234.5"), ("1234,5", "1234.5")),
    values("count", "groups of digits", "--thousands _", ("1 000", "1000"), ("2", "2")),
    values(
      "open", "true and false", "", ("true", "true"), ("FALSE", "false"), (" True ", "true"),
      ("1", "is neither true nor false: 1 → --true 1 --false 0 reads 1"),
      ("T", "is neither true nor false: T → --true t --false f reads T"),
      ("no", "is neither true nor false: no → --true yes --false no reads no"),
      ("ja", "is neither true nor false: ja → --true TEXT and --false TEXT add texts for true and false")),
    values(
      "open", "other words", "--true 1 --true ja --false 0 --false nein", ("1", "true"), ("Ja", "true"), ("0", "false"),
      ("NEIN", "false"), ("true", "true"),
      ("2", "is neither true nor false: 2 → --true TEXT and --false TEXT add texts for true and false")),
    values(
      "count", "words for nothing", "", ("NULL", "is not an integer of 64 bits: NULL → \(null("NULL"))"),
      ("\\N", "is not an integer of 64 bits: \\N → \(null("\\N"))"),
      ("N/A", "is not an integer of 64 bits: N/A → \(null("N/A"))")),
    values("count", "words for nothing, named", "--null NULL --null \\N", ("NULL", ""), ("\\N", ""), ("5", "5")),
    values(
      "name", "a word for nothing", "--null NULL", ("NULL", ""), ("null", #""null""#), (" NULL", #"" NULL""#),
      ("", #""""#)),
    values("open", "a word for nothing", "--null -", ("-", ""), ("true", "true")),
    values("day", "a word for nothing", "--null NULL", ("NULL", ""), ("2000-01-01", #""2000-01-01""#)),
    values(
      "day", "a word for nothing that is not named", "", ("NULL", "is not a date of RFC 3339: NULL → \(null("NULL"))")),
    values("owner", "a word for nothing", "--null NULL --reference owner=Item", ("NULL", ""), ("a", #""Item/a""#)),
    Case("an empty text is nothing where that is said", "name,note\n\"\",\"x\"\n", "--null ''", #"{"note":"x"}"#),
    Case("nothing in the column of the id", "id,name\nNULL,x\n", "--id id --null NULL", "2: an id column is empty"),
    Case("an id of a whole number", "count\n5.0\n1e3\n", "--id count", #"5 {"count":5}"#, #"1000 {"count":1000}"#),
  ]

  @Test(
    "Options that contradict each other are usage errors",
    arguments: [
      ["--true", "x", "--false", "X"], ["--true", "false"], ["--decimal", ";"], ["--decimal", ".", "--thousands", "."],
      ["--thousands", "12"], ["--thousands", "5"], ["--thousands", "e"], ["--map", "a"], ["--map", "=a"],
    ])
  func contradiction(_ options: [String]) {
    #expect(throws: (any Error).self) { try ImportCommand.parse(["a.csv", "--entity", "Item"] + options) }
  }
}
