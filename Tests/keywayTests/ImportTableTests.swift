import ArgumentParser
import Foundation
import KeyValueModel
import Testing

@testable import keyway

/// A table of files: how each is written, and what an import stores of it or says against it.
///
/// A case runs what the command runs, from its arguments and the bytes of its file to the objects that it would send.
/// To add one, add a row.
@Suite("A table of files to import")
struct ImportTableTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var file: [UInt8]
    var arguments: [String]
    /// A line for each row: its id, where it has one, and its object; or the line of the file with what is wrong there,
    /// and the hint behind an arrow.
    var outcome: [String]

    /// A file of text, and the options of its import as words; `_` in one is a space, `''` an empty one.
    init(_ name: String, _ text: String, _ options: String = "", _ outcome: String...) {
      self.init(name, bytes: Array(text.utf8), options, outcome)
    }

    init(_ name: String, bytes: [UInt8], _ options: String = "", _ outcome: [String]) {
      testDescription = name
      file = bytes
      arguments = options.split(separator: " ").map { $0 == "''" ? "" : String($0).replacing("_", with: " ") }
      self.outcome = outcome
    }
  }

  /// The properties of the entity whose objects all files have.
  private static let properties = #"""
    {
      "@ref": {"type": "string", "readOnly": true},
      "name": {"type": ["string", "null"]}, "note": {"type": ["string", "null"]},
      "count": {"type": ["integer", "null"]}, "price": {"type": ["number", "null"]},
      "open": {"type": ["boolean", "null"]}, "day": {"type": ["string", "null"], "keyway:type": "date"},
      "extra": {}, "owner": {"type": ["string", "null"], "keyway:toOne": "Item"},
      "parts": {"type": "array", "items": {"type": "string", "keyway:toOne": "Item"}},
      "total": {"type": "number", "readOnly": true}
    }
    """#

  /// What an import makes of a file, in the form of `Case.outcome`.
  private static func outcome(of example: Case) throws -> [String] {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-table-\(UUID().uuidString)")
    try Data(example.file).write(to: path)
    defer { try? FileManager.default.removeItem(at: path) }
    let command = try ImportCommand.parse([path.path, "--entity", "Item"] + example.arguments)
    var lines: [String] = []
    func note(_ error: ImportError) {
      lines.append("\(error.line): \(error.reason)" + (error.hint.map { " → \($0)" } ?? ""))
    }
    do throws(any Error) {
      let input = try InputFile(path.path, encoding: command.encoding)
      let properties = try Value(json: properties)
      switch command.actualFormat {
      case .csv:
        var table = command.table(in: input)
        let header = try #require(try table.next())
        let plan = try command.plan(for: header, schema: ["properties": properties])
        while let record = try table.next() {
          do throws(ImportError) {
            let row = try InvalidCell.located(line: record.line) { () throws(InvalidCell) in try plan.row(record) }
            lines.append((row.id.map { "\($0) " } ?? "") + Value.object(row.object).json)
          } catch {
            note(error)
          }
        }
      case .jsonl: break
      }
    } catch let error as ImportError {
      note(error)
    }
    return lines
  }

  @Test("is stored or refused as it says", arguments: encodings + columns + dialects + values)
  func row(_ example: Case) throws {
    let outcome = try Self.outcome(of: example)
    #expect(outcome == example.outcome)
  }

  private static let utf16: [UInt8] = [0x6E, 0, 0x61, 0, 0x6D, 0, 0x65, 0, 0x0A, 0, 0xAC, 0x20, 0x3D, 0xD8, 0x00, 0xDE]
  private static var swapped: [UInt8] {
    stride(from: 0, to: utf16.count, by: 2).flatMap { [utf16[$0 + 1], utf16[$0]] }
  }
  private static func file(_ header: String, _ bytes: [UInt8]) -> [UInt8] { Array(header.utf8) + bytes }

  private static let otherEncoding =
    "--encoding names the encoding of the file; windows-1252 is that of many spreadsheets in Europe and America"
  private static func wrong(_ encoding: String) -> String {
    "--encoding names another encoding than \(encoding); without it, the file is UTF-8, or UTF-16 by its mark"
  }

  static let encodings: [Case] = [
    Case("UTF-8", "name\nä→😀\n", "", #"{"name":"ä→😀"}"#),
    Case("UTF-8 with a byte order mark", "\u{FEFF}name\nä\n", "", #"{"name":"ä"}"#),
    Case("UTF-8 with a byte order mark, named", "\u{FEFF}name\nä\n", "--encoding utf-8", #"{"name":"ä"}"#),
    Case("a byte order mark that is not the first", "name\n\u{FEFF}ä\n", "", "{\"name\":\"\u{FEFF}ä\"}"),
    Case(
      "Latin-1 read as UTF-8", bytes: file("name,note\na,b\nä,Caf", [0xE9, 0x0A]), "",
      [#"{"name":"a","note":"b"}"#, "3: byte 7 of the line is not UTF-8: 0xE9 → \(otherEncoding)"]),
    Case("Latin-1", bytes: file("name\nCaf", [0xE9, 0x0A]), "--encoding latin1", [#"{"name":"Café"}"#]),
    Case("ISO 8859-1", bytes: file("name\nCaf", [0xE9, 0x0A]), "--encoding ISO-8859-1", [#"{"name":"Café"}"#]),
    Case(
      "Windows-1252", bytes: file("name\n", [0x80, 0x93, 0xFC, 0x94]), "--encoding windows-1252",
      [#"{"name":"€“ü”"}"#]),
    Case(
      "a byte that Windows-1252 lacks", bytes: file("name\nx\n", [0xE9, 0x81]), "--encoding windows-1252",
      [#"{"name":"x"}"#, "3: character 2 of the line is not windows-1252: 0x81 → \(wrong("windows-1252"))"]),
    Case("KOI8-R", bytes: file("name\n", [0xC4, 0xC1]), "--encoding koi8-r", [#"{"name":"да"}"#]),
    Case("Shift JIS", bytes: file("name\n", [0x93, 0xFA, 0x96, 0x7B]), "--encoding sjis", [#"{"name":"日本"}"#]),
    Case(
      "a letter that waits for its accent at the end", bytes: file("name\n", [0x61]), "--encoding windows-1258",
      [#"{"name":"a"}"#]),
    Case("UTF-16LE", bytes: utf16, "--encoding utf-16le", [#"{"name":"€😀"}"#]),
    Case("UTF-16LE with a byte order mark", bytes: [0xFF, 0xFE] + utf16, "", [#"{"name":"€😀"}"#]),
    Case(
      "UTF-16LE with its mark, named", bytes: [0xFF, 0xFE] + utf16, "--encoding utf-16le", [#"{"name":"€😀"}"#]),
    Case("UTF-16BE", bytes: swapped, "--encoding utf-16be", [#"{"name":"€😀"}"#]),
    Case("UTF-16BE with a byte order mark", bytes: [0xFE, 0xFF] + swapped, "", [#"{"name":"€😀"}"#]),
    Case(
      "UTF-16 with its mark, named", bytes: [0xFE, 0xFF] + swapped, "--encoding utf-16", [#"{"name":"€😀"}"#]),
    Case(
      "UTF-16LE without a mark", bytes: utf16, "",
      ["1: the file is not UTF-8 but looks like UTF-16 → --encoding utf-16le reads it"]),
    Case(
      "UTF-16BE without a mark", bytes: swapped, "",
      ["1: the file is not UTF-8 but looks like UTF-16 → --encoding utf-16be reads it"]),
    Case(
      "half of a surrogate pair", bytes: [0xFF, 0xFE] + utf16.dropLast(2), "",
      ["2: character 2 of the line is not UTF-16LE: 0x3D 0xD8, where the file ends → \(otherEncoding)"]),
    Case(
      "UTF-8 that is cut at the end of the file", bytes: file("name\nab\nx", [0xE2, 0x82]), "",
      [#"{"name":"ab"}"#, "3: byte 2 of the line is not UTF-8: 0xE2 0x82, where the file ends → \(otherEncoding)"]),
    Case(
      "UTF-8 that is cut within a line", bytes: file("name\nab\nx", [0xE2, 0x82, 0x0A]), "",
      [#"{"name":"ab"}"#, "3: byte 2 of the line is not UTF-8: 0xE2 0x82 → \(otherEncoding)"]),
    Case(
      "a surrogate in UTF-8", bytes: file("name\n", [0xED, 0xA0, 0x80]), "--encoding utf-8",
      ["2: byte 1 of the line is not utf-8: 0xED → \(wrong("utf-8"))"]),
    Case(
      "a character above U+10FFFF", bytes: file("name\n", [0xF4, 0x90, 0x80, 0x80]), "",
      ["2: byte 1 of the line is not UTF-8: 0xF4 → \(otherEncoding)"]),
    Case(
      "a mistake behind the first piece of a long file",
      bytes: file("name,note\n", Array(repeatElement(Array("ä,\n".utf8), count: 20_000).joined()) + [0x61, 0xFF]), "",
      repeatElement(#"{"name":"ä"}"#, count: 20_000) + [
        "20002: byte 2 of the line is not UTF-8: 0xFF → \(otherEncoding)"
      ]),
  ]

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
    Case("no names at all", ",,\nname,,\n", "", "1: the first record has no names of columns"),
    Case("a line that names the delimiter", "sep=;\r\nname;note\r\na,b;c\r\n", "", #"{"name":"a,b","note":"c"}"#),
    Case("a line that names a tabulator", "SEP=\t\nname\tnote\na\tb\n", "", #"{"name":"a","note":"b"}"#),
    Case("a line that names a comma", "sep=,\nname,note\na,b\n", "", #"{"name":"a","note":"b"}"#),
    Case(
      "a line that names another delimiter", "sep=,\nname;note\na;b\n", "--delimiter ;", #"{"name":"a","note":"b"}"#),
    Case("the line of a mistake below that line", "sep=;\ncount\nx\n", "", "3: count is no integer of 64 bits: x"),
    Case(
      "a column whose name begins like that line", "sep=\na\n", "",
      "1: the entity has no key sep= for the column "
        + "sep=; it has \(keys). --map sep==KEY names another, --map sep== leaves the column out"),
    Case(
      "another delimiter than is read", "name;note\na;b\n", "--id name",
      "1: there is no column name; there are name;note → --delimiter ';' splits the fields of the file"),
    Case(
      "tabulators", "name\tnote\na\tb\n", "",
      "1: the entity has no key name\tnote for the column name\tnote; it has \(keys). --map name\tnote=KEY names "
        + "another, --map name\tnote= leaves the column out → --delimiter tab splits the fields of the file"),
    Case(
      "what is before a mistake of the file", "name\na\nb\"c\n", "", #"{"name":"a"}"#,
      "3: a quotation mark inside a field that does not begin with one"),
  ]

  private static func null(_ text: String) -> String { "--null '\(text)' takes such fields for empty ones" }

  /// A case of one column of a key.
  private static func values(_ key: String, _ name: String, _ options: String, _ values: (String, String)...) -> Case {
    let rows = values.map { "\"\($0.0.replacing("\"", with: "\"\""))\",\n" }
    let outcome = values.enumerated().map { index, value in
      value.1.hasPrefix("is ")
        ? "\(index + 2): \(key) \(value.1)" : value.1.isEmpty ? "{}" : #"{"\#(key)":\#(value.1)}"#
    }
    return Case("\(key): \(name)", bytes: Array("\(key),\n\(rows.joined())".utf8), options, outcome)
  }

  static let values: [Case] = [
    values(
      "count", "whole numbers, however they are written", "", ("5", "5"), ("5.0", "5"), ("1e3", "1000"), ("-0.0", "0"),
      ("+7", "7"), (" 8 ", "8"), ("120e-1", "12"), ("1E+2", "100"), ("5.", "5"), ("007", "7"), ("", ""),
      ("9223372036854775807.0", "9223372036854775807"), ("-9223372036854775808", "-9223372036854775808"),
      ("922337203685477580.7e1", "9223372036854775807"), ("0e999999", "0")),
    values(
      "count", "what is not whole, or too large", "", ("5.5", "is no integer of 64 bits: 5.5"),
      ("9223372036854775808", "is no integer of 64 bits: 9223372036854775808"),
      ("1e19", "is no integer of 64 bits: 1e19"), ("1e-1", "is no integer of 64 bits: 1e-1"),
      ("1e", "is no integer of 64 bits: 1e"), ("0x10", "is no integer of 64 bits: 0x10"),
      ("1e99999999", "is no integer of 64 bits: 1e99999999"), ("٣", "is no integer of 64 bits: ٣"),
      ("5 %", "is no integer of 64 bits: 5 %"), (".", "is no integer of 64 bits: .")),
    values(
      "count", "signs between digits", "",
      ("1,000", "is no integer of 64 bits: 1,000 → --decimal , reads 1,000 as 1, --thousands , reads 1,000 as 1000"),
      ("5,0", "is no integer of 64 bits: 5,0 → --decimal , reads 5,0 as 5"),
      ("1'000", "is no integer of 64 bits: 1'000 → --thousands \"'\" reads 1'000 as 1000")),
    values(
      "price", "numbers", "", ("1.5", "1.5"), ("-2", "-2"), ("1e-3", "0.001"), (".5", "0.5"), ("1e300", "1e300"),
      ("0.1", "0.1"), ("-0.0", "-0.0")),
    values(
      "price", "what is no number", "", ("inf", "is no number: inf"), ("1e999", "is no number: 1e999"),
      ("0x1p3", "is no number: 0x1p3"), ("--5", "is no number: --5"), ("$5", "is no number: $5"),
      ("nan", "is no number: nan → \(null("nan"))"),
      ("3,5", "is no number: 3,5 → --decimal , reads 3,5 as 3.5"),
      (
        "1.234,5", "is no number: 1.234,5 → --decimal , --thousands . reads 1.234,5 as 1234.5"
      ),
      ("12,34,567", "is no number: 12,34,567")),
    values(
      "price", "a decimal comma", "--decimal ,", ("3,5", "3.5"), ("3", "3"), ("1,5e3", "1500"),
      ("3.5", "is no number: 3.5 → --decimal . reads 3.5 as 3.5"),
      ("1.234,5", "is no number: 1.234,5 → --decimal , --thousands . reads 1.234,5 as 1234.5")),
    values(
      "price", "groups of digits", "--thousands ,", ("1,234.5", "1234.5"), ("1234.5", "1234.5"),
      ("-1,234,567", "-1234567"),
      ("1,23", "is no number: 1,23 → --decimal , reads 1,23 as 1.23"),
      (",123", "is no number: ,123 → --decimal , reads ,123 as 0.123")),
    values(
      "price", "a decimal comma and groups", "--decimal , --thousands .", ("1.234,5", "1234.5"), ("1234,5", "1234.5")),
    values("count", "groups of digits", "--thousands _", ("1 000", "1000"), ("2", "2")),
    values(
      "open", "true and false", "", ("true", "true"), ("FALSE", "false"), (" True ", "true"),
      ("1", "is neither true nor false: 1 → --true 1 --false 0 reads 1"),
      ("T", "is neither true nor false: T → --true t --false f reads T"),
      ("no", "is neither true nor false: no → --true yes --false no reads no"),
      ("ja", "is neither true nor false: ja → --true TEXT and --false TEXT say what else means true and false")),
    values(
      "open", "other words", "--true 1 --true ja --false 0 --false nein", ("1", "true"), ("Ja", "true"), ("0", "false"),
      ("NEIN", "false"), ("true", "true"),
      ("2", "is neither true nor false: 2 → --true TEXT and --false TEXT say what else means true and false")),
    values(
      "count", "words for nothing", "", ("NULL", "is no integer of 64 bits: NULL → \(null("NULL"))"),
      ("\\N", "is no integer of 64 bits: \\N → \(null("\\N"))"),
      ("N/A", "is no integer of 64 bits: N/A → \(null("N/A"))")),
    values("count", "words for nothing, named", "--null NULL --null \\N", ("NULL", ""), ("\\N", ""), ("5", "5")),
    values(
      "name", "a word for nothing", "--null NULL", ("NULL", ""), ("null", #""null""#), (" NULL", #"" NULL""#),
      ("", #""""#)),
    values("open", "a word for nothing", "--null -", ("-", ""), ("true", "true")),
    values("day", "a word for nothing", "--null NULL", ("NULL", ""), ("2000-01-01", #""2000-01-01""#)),
    values(
      "day", "a word for nothing that is not named", "", ("NULL", "is no date of RFC 3339: NULL → \(null("NULL"))")),
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

  private static let keys = "name, note, count, price, open, day, extra, owner, parts, total"

  @Test("However a file is cut into pieces, its text is the same", arguments: encodings)
  func pieces(_ example: Case) throws {
    let encoding = example.arguments.last
    func text(_ size: Int) -> TextDecoder.Output {
      var decoder = TextDecoder(encoding: encoding)
      var output = TextDecoder.Output([], nil)
      var rest = example.file[...]
      repeat {
        let piece = rest.prefix(size)
        rest = rest.dropFirst(size)
        let (text, failure) = decoder.decode(piece, isLast: rest.isEmpty)
        output = (output.text + text, failure)
      } while output.failure == nil && !rest.isEmpty
      return output
    }
    let whole = text(Int.max)
    for size in [1, 2, 3, 7, 1_000] {
      let cut = text(size)
      #expect(cut.text == whole.text && cut.failure?.line == whole.failure?.line, "pieces of \(size)")
      #expect((cut.failure == nil) == (whole.failure == nil), "pieces of \(size)")
    }
  }

  @Test(
    "An encoding that is not known is a usage error, also one that would leave out what it cannot read",
    arguments: ["klingon", "", "utf-8//IGNORE", "latin1//TRANSLIT"])
  func unknownEncoding(_ name: String) {
    #expect(throws: (any Error).self) {
      try ImportCommand.parse(["a.csv", "--entity", "Item", "--encoding", name])
    }
  }
}
