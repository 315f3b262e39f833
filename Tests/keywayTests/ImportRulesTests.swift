import KeyValueModel
import KeywayClient
import Testing

@testable import keyway

@Suite("Rows as objects")
struct ImportRulesTests {
  @Test(
    "an id is its columns joined, with spaces as hyphens",
    arguments: [
      (["MSFT"], "MSFT"), (["MSFT", "2000-01-01"], "MSFT-2000-01-01"), (["St. John", "x~_"], "St.-John-x~_"),
    ])
  func id(parts: [String], expected: String) throws {
    #expect(try ImportID.id(of: parts) == expected)
  }

  @Test(
    "an id with anything else in it is refused",
    arguments: [
      ["a/b"], ["ä"], ["a\tb"], ["a:b"], [""], ["a", ""], ["."], [".."], [String(repeating: "x", count: 129)],
    ])
  func badID(_ parts: [String]) {
    #expect(throws: InvalidCell.self) { try ImportID.id(of: parts) }
  }

  static let schema: JSONObject = [
    "properties": .object([
      "@ref": .object(["type": .string("string"), "readOnly": .bool(true)]),
      "symbol": .object(["type": .string("string")]),
      "date": .object(["type": .array([.string("string"), .string("null")]), "format": .string("date-time")]),
      "price": .object(["type": .array([.string("number"), .string("null")])]),
      "volume": .object(["type": .string("integer")]), "open": .object(["type": .string("boolean")]),
      "tags": .object([:]),
      "stock": .object(["type": .array([.string("string"), .string("null")]), "keyway:toOne": .string("Stock")]),
      "total": .object(["type": .string("number"), "readOnly": .bool(true)]),
    ])
  ]

  private static func record(_ texts: [String], line: Int = 1) -> CSVRecord {
    CSVRecord(line: line, fields: texts.map { CSVField(text: $0, isQuoted: false) })
  }

  private static func plan(
    _ header: [String], id: [String] = ["symbol"], renames: [String: String] = [:], references: [String: String] = [:],
    dateFormat: String? = "%b %d %Y"
  ) throws -> ImportPlan {
    try ImportPlan(
      header: record(header), schema: schema, idColumns: id, renames: renames, references: references,
      rules: FieldRules(dateFormat: try dateFormat.map { try DateFormat($0) }))
  }

  @Test("a column of ids becomes references, by the rules of ids; without id columns the server makes the id")
  func references() throws {
    let plan = try Self.plan(["share", "price"], id: [], renames: ["share": "stock"], references: ["share": "Stock"])
    let row = try plan.row(Self.record(["A B", "1"]))
    #expect(row.id == nil)
    #expect(Value.object(row.object).json == #"{"stock":"Stock/A-B","price":1}"#)
    #expect(Value.object(try plan.row(Self.record(["", "1"])).object).json == #"{"price":1}"#)
    #expect(throws: InvalidCell.self) { try plan.row(Self.record(["a/b", "1"])) }
    #expect(throws: InvalidCell.self) { try Self.plan(["symbol"], references: ["symbol": "Stock"]) }
    #expect(throws: InvalidCell.self) { try Self.plan(["symbol"], references: ["stock": "Stock"]) }
  }

  @Test("what replaces an object leaves a relationship alone whose other side has it, unless a column has it")
  func replacement() throws {
    var schema = Self.schema
    var properties = try #require(schema["properties"]?.asObject)
    properties["orders"] = .object([
      "type": .string("array"), "items": .object(["keyway:toOne": .string("Order")]),
      "keyway:inverse": .string("symbol"),
    ])
    schema["properties"] = .object(properties)
    func replacement(_ texts: [String: String]) throws -> Set<String> {
      let columns = texts.sorted { $0.key < $1.key }
      let plan = try ImportPlan(
        header: Self.record(columns.map(\.key)), schema: schema, idColumns: ["symbol"], renames: [:],
        rules: FieldRules())
      #expect(plan.leavesRelationships == (texts["orders"] == nil))
      let object = try #require(Reference(entity: "Share", id: "A"))
      let row = try plan.row(Self.record(columns.map(\.value)))
      return Set(plan.replacement(of: object, by: row).map(\.json.json).map(Self.sorted))
    }
    let values = #""symbol":"A","date":null,"price":2,"volume":null,"open":null,"stock":null"#
    func expected(_ values: String) -> Set<String> {
      let tags = #"{"op":"set","object":"Share/A","keyPath":"tags","value":null}"#
      return Set([#"{"op":"patch","object":"Share/A","value":{\#(values)}}"#, tags].map(Self.sorted))
    }
    #expect(try replacement(["symbol": "A", "price": "2"]) == expected(values))
    let both = try replacement(["symbol": "A", "price": "2", "orders": ""])
    #expect(both == expected(values + #","orders":[]"#))
  }

  /// Sorts the characters of a JSON text, so that the order of members does not matter.
  private static func sorted(_ json: String) -> String { String(json.sorted()) }

  @Test("a reference that the server refuses has a hint with the option that would have read it")
  func hints() throws {
    func hint(_ key: String, _ text: String) throws -> String? {
      let plan = try Self.plan([key, "symbol"])
      return plan.hint(forKey: key, of: try plan.row(Self.record([text, "A"])))
    }
    #expect(try hint("stock", "AAPL")?.hasPrefix("--reference stock=Stock takes the ids") == true)
    #expect(try hint("stock", "Stock/AAPL") == nil)
    #expect(try hint("tags", "x") == nil)
  }

  @Test("of many refused rows the first are told, the rest counted, and a hint comes once")
  func refusedRows() {
    var refused = RefusedRows()
    refused.add([ImportError(line: 9, reason: "b", hint: "h"), ImportError(line: 2, reason: "a", hint: "h")])
    #expect(refused.text(file: "f") == "f:2: a\nf:9: b\nhint: h")
    refused.add((10..<1_040).map { ImportError(line: $0, reason: "c") })
    #expect(refused.count == 1_032 && refused.first.count == RefusedRows.maximum)
    #expect(refused.text(file: "f").hasSuffix("f:27: c\nand 1,012 more\nhint: h"))
  }

  @Test("values have the types of the schema, and empty fields are left out")
  func types() throws {
    let plan = try Self.plan(["symbol", "date", "price", "volume", "open", "tags"], id: ["symbol", "date"])
    let row = try plan.row(Self.record(["A B", "Jan 1 2000", "39.81", "-7", "TRUE", "[1]"], line: 9))
    #expect(row.id == "A-B-2000-01-01")
    #expect(row.line == 9)
    let json = #"{"symbol":"A B","date":"2000-01-01","price":39.81,"volume":-7,"open":true,"tags":[1]}"#
    #expect(Value.object(row.object).json == json)
    let sparse = try plan.row(Self.record(["A", "Jan 1 2000", "", "", "", "no json"]))
    #expect(Value.object(sparse.object).json == #"{"symbol":"A","date":"2000-01-01","tags":"no json"}"#)
  }

  @Test("an empty text in quotation marks is a text")
  func emptyText() throws {
    let plan = try Self.plan(["symbol", "tags"], id: ["tags"])
    let fields = [CSVField(text: "", isQuoted: true), CSVField(text: "x", isQuoted: false)]
    #expect(try plan.row(CSVRecord(line: 2, fields: fields)).object["symbol"] == .string(""))
  }

  @Test("columns can be renamed and left out")
  func renames() throws {
    let plan = try Self.plan(["ticker", "note"], id: ["ticker"], renames: ["ticker": "symbol", "note": ""])
    let row = try plan.row(Self.record(["A", "whatever"]))
    #expect(Value.object(row.object).json == #"{"symbol":"A"}"#)
  }

  @Test(
    "a header that does not fit the schema is refused before anything is written",
    arguments: [
      (["symbol", "colour"], ["symbol"], [:]), (["symbol", "symbol"], ["symbol"], [:]), (["symbol"], ["isin"], [:]),
      (["symbol", "total"], ["symbol"], [:]), (["symbol"], ["symbol"], ["isin": "symbol"]),
      (["symbol", "price"], ["symbol"], ["price": "symbol"]),
    ] as [([String], [String], [String: String])])
  func badHeader(header: [String], id: [String], renames: [String: String]) {
    #expect(throws: InvalidCell.self) { try Self.plan(header, id: id, renames: renames) }
  }

  @Test("rows of one id go to one worker, and many ids to all of them")
  func shards() {
    let ids = (0..<1000).map { "id-\($0)" }
    #expect(Set(ids.map { Importer.shard($0, of: 8) }) == Set(0..<8))
    #expect(ids.allSatisfy { Importer.shard($0, of: 8) == Importer.shard($0, of: 8) })
  }

  @Test("the summary groups thousands")
  func summary() {
    #expect(ImportSummary.text(rows: 560, seconds: 0.4) == "imported 560 rows in 0.4 s (1,400/s)")
    #expect(ImportSummary.text(rows: 1, seconds: 2) == "imported 1 row in 2.0 s (0/s)")
    #expect(ImportSummary.grouped(-1_234_567) == "-1,234,567")
    #expect(ImportSummary.bar(rows: 5, share: 0.5, seconds: 1, width: 4) == "██░░  50 %  5 rows, 5/s")
  }
}

@Suite("Ids that different texts make")
struct KnownIDsTests {
  @Test("other texts with the id of an earlier line are refused, and equal ones are not")
  func collisions() throws {
    var ids = KnownIDs()
    try ids.insert("A-1", of: ["A 1"], line: 2)
    try ids.insert("A-1", of: ["A 1"], line: 3)
    #expect(throws: InvalidCell(reason: "“A-1” makes the id A-1, which line 2 has made of “A 1”")) {
      try ids.insert("A-1", of: ["A-1"], line: 4)
    }
    try ids.insert("1-2-3", of: ["1-2", "3"], line: 5)
    #expect(throws: InvalidCell(reason: "“1, 2-3” makes the id 1-2-3, which line 5 has made of “1-2, 3”")) {
      try ids.insert("1-2-3", of: ["1", "2-3"], line: 6)
    }
  }

  @Test("only the last ids are remembered, and none that nothing else makes")
  func memory() throws {
    var ids = KnownIDs(bytes: 2_000)
    try ids.insert("A-1", of: ["A 1"], line: 1)
    for line in 2...1_000 { try ids.insert("\(line)-0", of: ["\(line)", "0"], line: line) }
    #expect(throws: InvalidCell.self) { try ids.insert("A-1", of: ["A-1"], line: 1_001) }
    for line in 1_002...1_100 { try ids.insert("\(line)-0", of: ["\(line) 0"], line: line) }
    try ids.insert("A-1", of: ["A-1"], line: 1_101)
  }
}
