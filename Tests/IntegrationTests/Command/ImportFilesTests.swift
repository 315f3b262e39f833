import Foundation
import KeyValueModel
import TestKit
import Testing

/// Files as other programs write them, imported into a server by the program.
///
/// `ImportTableTests` has the many variants of files; here is one of each kind, from end to end.
@Suite("Importing files of other programs")
struct ImportFilesTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// The name of the file, whose ending determines the format.
    var name = "items.csv"
    var file: [UInt8]
    var arguments: [String]
    /// The expected values as JSON, by ids and keys; nil for an object that must not exist.
    var values: [String: String?]
    /// The error that the import ends with, without the file; nil for a success.
    var error: String?
  }

  private static let schema = """
    entities:
      Item:
        keys:
          name: { type: string }
          count: { type: integer }
          price: { type: number }
          open: { type: boolean }
          day: { type: date }
          owner: { toOne: Item }
    """

  private static func utf16(_ text: String) -> [UInt8] {
    [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
  }

  private static let cafe: [UInt8] = Array("Caf".utf8) + [0xE9]

  static let cases = [
    Case(
      testDescription: "Latin-1 that is taken for UTF-8", file: Array("id,name\na,x\nb,".utf8) + cafe,
      arguments: ["--id", "id"], values: ["a/name": #""x""#, "b": nil],
      error: """
        :3: byte 6 of the line is not UTF-8: 0xE9, where the file ends
        hint: --encoding names the encoding of the file; windows-1252 is that of many spreadsheets in Europe and America
        stopped; 1 row had been imported
        """),
    Case(
      testDescription: "JSON lines in Latin-1 that are taken for UTF-8", name: "items.jsonl",
      file: Array(#"{"@ref":"Item/a","name":""#.utf8) + cafe + Array("\"}\n".utf8), arguments: [], values: ["a": nil],
      error: """
        :1: byte 29 of the line is not UTF-8: 0xE9
        hint: --encoding names the encoding of the file; windows-1252 is that of many spreadsheets in Europe and America
        stopped in batch 1, which was not applied; 0 rows had been imported
        """),
    Case(
      testDescription: "JSON lines in Latin-1", name: "items.jsonl",
      file: Array(#"{"@ref":"Item/a","name":""#.utf8) + cafe + Array("\"}\n".utf8),
      arguments: ["--encoding", "latin1"], values: ["a/name": #""Café""#]),
    Case(
      testDescription: "UTF-16 as spreadsheets write it", file: utf16("id\tname\r\na\tä→😀\r\n"),
      arguments: ["--id", "id", "--delimiter", "tab"], values: ["a/name": #""ä→😀""#]),
    Case(
      testDescription: "a data frame with a column of row numbers",
      file: Array(",id,count,price,open\n0,a,5.0,1e3,True\n1,b,,nan,False\n".utf8),
      arguments: ["--id", "id", "--map", "1=", "--null", "nan"],
      values: ["a/count": "5", "a/price": "1000", "a/open": "true", "b/count": "null", "b/price": "null"]),
    Case(
      testDescription: "a spreadsheet of another country",
      file: Array("sep=;\r\nid;price;day;;\r\na;1.234,5;25.06.2022;;\r\n".utf8),
      arguments: ["--id", "id", "--decimal", ",", "--thousands", ".", "--date-format", "%d.%m.%Y"],
      values: ["a/price": "1234.5", "a/day": #""2022-06-25""#]),
    Case(
      testDescription: "a table of PostgreSQL",
      file: Array("id,name,count,open,day\na,\\N,1,t,2022-06-25 11:03:50.052+00\n".utf8),
      arguments: ["--id", "id", "--null", "\\N", "--true", "t", "--false", "f"],
      values: ["a/name": "null", "a/open": "true", "a/day": #""2022-06-25T11:03:50.052+00:00""#]),
    Case(
      testDescription: "a date that may be one of two", file: Array("id,day\na,01/02/2000\n".utf8),
      arguments: ["--id", "id"], values: ["a": nil],
      error: """
        :2: day is not a date of RFC 3339: 01/02/2000
        hint: --date-format '%m/%d/%Y' reads 01/02/2000 as 2000-01-02, --date-format '%d/%m/%Y' reads 01/02/2000 as \
        2000-02-01
        stopped; 0 rows had been imported
        """),
    Case(
      testDescription: "records of PocketBase", name: "items.jsonl",
      file: Array(
        (#"{"collectionId":"c","id":"a","title":"x","created":"2022-06-25 11:03:50.052Z","parent":"b","done":""}"#
          + "\n"
          + #"{"collectionId":"c","id":"b","title":"y","created":"2022-06-25 11:03:51.000Z","parent":"","done":""}"#)
          .utf8),
      arguments: [
        "--id", "id", "--map", "collectionId=", "--map", "title=name", "--map", "created=day", "--map", "parent=owner",
        "--reference", "parent=Item", "--map", "done=", "--null", "",
      ],
      values: [
        "a/name": #""x""#, "a/day": #""2022-06-25T11:03:50.052Z""#, "a/owner": #""Item/b""#, "b/owner": "null",
      ]),
  ]

  @Test("A file is stored or refused as it says", arguments: cases)
  func file(_ example: Case) throws {
    let folder = try ScratchDirectory()
    let schema = try folder.write(Self.schema, to: "schema.yaml")
    let server = try ServerProcess("--schema", schema, settings: ["seed": "none"])
    let path = folder.file(example.name)
    try Data(example.file).write(to: URL(fileURLWithPath: path))
    let entity = example.arguments.contains("--id") ? ["--entity", "Item"] : []
    let imported = try ChildProcess.run(
      PackageFolder.keyway, ["import", path] + entity + example.arguments + ["--server", server.url])
    #expect(imported.status == (example.error == nil ? 0 : 1), "\(imported.errors)")
    if let error = example.error { #expect(imported.errors == "Error: \(path)\(error)\n") }
    for (place, value) in example.values {
      let response = try server.client.send("GET", "/v1/objects/Item/\(place)")
      #expect(response.status == (value == nil ? 404 : 200), "\(place)")
      if let value { #expect(try server.client.json("/v1/objects/Item/\(place)").json == value, "\(place)") }
    }
  }
}
