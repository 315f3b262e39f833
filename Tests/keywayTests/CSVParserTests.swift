import TestKit
import Testing

@testable import keyway

@Suite("The parser of CSV")
struct CSVParserTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var text: String
    /// The line and the fields of each record; quoted fields in quotation marks.
    var records: [(Int, [String])]
  }

  static let cases = [
    Case(testDescription: "fields and records", text: "a,b\r\nc,d\r\n", records: [(1, ["a", "b"]), (2, ["c", "d"])]),
    Case(testDescription: "no line break at the end", text: "a,b\nc,d", records: [(1, ["a", "b"]), (2, ["c", "d"])]),
    Case(testDescription: "empty fields and empty texts", text: ",\"\",\n", records: [(1, ["", "\"\"", ""])]),
    Case(
      testDescription: "commas, quotation marks and line breaks in quotation marks",
      text: "\"a,b\",\"say \"\"hi\"\"\",\"1\r\n2\"\nx,y,z\n",
      records: [(1, ["\"a,b\"", "\"say \"hi\"\"", "\"1\r\n2\""]), (3, ["x", "y", "z"])]),
    Case(
      testDescription: "empty lines are skipped and counted", text: "a\n\n\r\nb\n", records: [(1, ["a"]), (4, ["b"])]),
    Case(
      testDescription: "rows of delimiters alone are skipped and counted", text: ",,\na,b,\n,,\r\n,\n,\"\"\n,,",
      records: [(2, ["a", "b", ""]), (5, ["", "\"\""])]),
    Case(testDescription: "spaces belong to the field", text: " a , b\n", records: [(1, [" a ", " b"])]),
    Case(testDescription: "a last field that is empty", text: "a,", records: [(1, ["a", ""])]),
    Case(testDescription: "an empty file", text: "", records: []),
  ]

  private static func shown(_ records: [CSVRecord]) -> [String] {
    records.map { "\($0.line) \($0.fields.map { $0.isQuoted ? "\"\($0.text)\"" : $0.text })" }
  }

  @Test("reads a file in one piece", arguments: cases)
  func whole(_ example: Case) throws {
    var parser = CSVParser()
    var records: [CSVRecord] = []
    try parser.parse(Array(example.text.utf8), into: &records)
    try parser.finish(into: &records)
    #expect(Self.shown(records) == example.records.map { "\($0.0) \($0.1)" })
  }

  @Test("reads the same records however the file is cut", arguments: cases)
  func split(_ example: Case) throws {
    for seed in UInt64(1)...50 {
      var generator = SplitMix64(seed: seed)
      var parser = CSVParser()
      var records: [CSVRecord] = []
      var rest = Array(example.text.utf8)[...]
      while !rest.isEmpty {
        let piece = rest.prefix(Int.random(in: 1...4, using: &generator))
        rest = rest[piece.endIndex...]
        try parser.parse(piece, into: &records)
      }
      try parser.finish(into: &records)
      #expect(Self.shown(records) == example.records.map { "\($0.0) \($0.1)" }, "seed \(seed)")
    }
  }

  @Test(
    "takes another delimiter, and a comma for a character then",
    arguments: [(";", "a,b;\"c;d\";"), ("\t", "a,b\t\"c\td\"\t")])
  func delimiter(_ delimiter: String, _ text: String) throws {
    var parser = CSVParser(delimiter: try #require(delimiter.utf8.first))
    var records: [CSVRecord] = []
    try parser.parse(Array(text.utf8), into: &records)
    try parser.finish(into: &records)
    #expect(records.map { $0.fields.map(\.text) } == [["a,b", "c\(delimiter)d", ""]])
  }

  @Test(
    "names the line of a mistake",
    arguments: [
      ("a,b\nc,\"d\n\n", 2, "a quotation mark is never closed"),
      ("a\nb\"c\n", 2, "a quotation mark inside a field that does not begin with one"),
      ("a\n\"b\"c\n", 2, "there is text between a closing quotation mark and the next delimiter"),
      ("a\rb\n", 1, "a carriage return without a line feed"),
      ("a\n123456789012345678901", 2, "the record is larger than 20 bytes"),
    ])
  func mistake(text: String, line: Int, reason: String) {
    var parser = CSVParser(maximumRecordBytes: 20)
    var records: [CSVRecord] = []
    #expect(throws: ImportError(line: line, reason: reason)) {
      try parser.parse(Array(text.utf8), into: &records)
      try parser.finish(into: &records)
    }
  }
}
