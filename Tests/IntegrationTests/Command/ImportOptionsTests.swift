import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("Options of an import") struct ImportOptionsTests {
  private let server: ServerProcess
  private let folder: ScratchDirectory

  init() throws {
    server = try ServerProcess()
    folder = try ScratchDirectory()
  }

  private func importing(
    _ csv: String, _ arguments: String...
  ) throws -> (status: Int32, output: String, errors: String) {
    let file = try folder.write(csv, to: "rows.csv")
    return try ChildProcess.run(PackageFolder.keyway, ["import", file] + arguments + ["--server", server.url])
  }

  @Test("Rows without id columns get the server's ids, a column of ids becomes references, and ; separates fields")
  func references() throws {
    let rows = "quote;portfolio;shares\nAAPL;1;5\nIBM;1;7\nIBM;;8\n"
    let imported = try importing(
      rows, "--entity", "Position", "--delimiter", ";", "--reference", "quote=Quote", "--reference",
      "portfolio=Portfolio")
    #expect(imported.status == 0, "\(imported.errors)")
    #expect(imported.output.hasPrefix("imported 3 rows in "))
    let made = try server.client.json("/v1/objects/Position?filter=shares>=5.0%26%26shares<=8.0&sort=shares")
    let positions = made["objects"].items.filter { $0["@ref"].text?.count == "Position/".count + 36 }
    #expect(positions.map { $0["quote"].text } == ["Quote/AAPL", "Quote/IBM", "Quote/IBM"])
    #expect(positions.map { $0["portfolio"].text } == ["Portfolio/1", "Portfolio/1", nil])
  }

  @Test("An import that keeps going writes the other rows, and lists what was refused, with the option that helps")
  func keepGoing() throws {
    let rows = "symbol,date,price\nA,Jan 1 2000,1\nB,2000-01-01,2\nC,2000-01-01,cheap\nD,2000-01-01,-4\nE,,5\n"
    let imported = try importing(rows, "--entity", "Quote", "--id", "symbol", "--keep-going")
    #expect(imported.status == 1)
    #expect(imported.output.contains("imported 2 rows") && imported.output.contains("refused 3"), "\(imported.output)")
    let lines = imported.errors.split(separator: "\n")
    #expect(lines.count == 4, "\(imported.errors)")
    #expect(lines[0].contains("rows.csv:2: date is not a date of RFC 3339: Jan 1 2000"))
    #expect(lines[1].contains("rows.csv:4: price is not a number: cheap"))
    #expect(lines[2].contains("rows.csv:5: 422 invalid-value"))
    #expect(lines[3] == "hint: --date-format '%b %d %Y' reads Jan 1 2000 as 2000-01-01")
    for (id, status) in [("A", 404), ("B", 200), ("C", 404), ("D", 404), ("E", 200)] {
      #expect(try server.client.send("GET", "/v1/objects/Quote/\(id)").status == status, "\(id)")
    }
  }

  @Test("Rows that replace objects leave a relationship alone that no column is for")
  func relationships() throws {
    let schema = try folder.write(
      """
      entities:
        Customer: {keys: {name: {type: string}, vip: {type: boolean, default: false}, info: {type: json}, \
          first: {toOne: Order}, orders: {toMany: Order, inverse: customer}}}
        Order: {keys: {customer: {toOne: Customer, inverse: orders}}}
      """, to: "schema.yaml")
    let server = try ServerProcess("--schema", schema, settings: ["seed": "none"])
    let file = try folder.write("id,name\n1,A\n2,B\n", to: "customers.csv")
    func importing(_ file: String, _ entity: String) throws {
      let imported = try ChildProcess.keyway(
        "import", file, "--entity", entity, "--id", "id", "--server", server.url)
      #expect(imported.status == 0 && imported.output.hasPrefix("imported "), "\(imported.errors)")
    }
    try importing(file, "Customer")
    try server.client.must("PUT", "/v1/objects/Order/1", body: #"{"customer":"Customer/1"}"#)
    try server.client.must("PATCH", "/v1/objects/Customer/1", body: #"{"vip":true,"info":{"a":1}}"#)
    try importing(try folder.write("id,name\n1,C\n2,B\n3,D\n", to: "customers.csv"), "Customer")
    #expect(try server.client.json("/v1/objects/Order/1")["customer"].text == "Customer/1")
    let customer = try server.client.json("/v1/objects/Customer/1")
    #expect(customer["name"].text == "C" && customer["vip"] == .bool(false) && customer["info"].isNull)
    #expect(try server.client.json("/v1/objects/Customer/3")["name"].text == "D")
    // A column that is present, even if empty, sets the key.
    try importing(try folder.write("id,customer\n1,\n", to: "orders.csv"), "Order")
    #expect(try server.client.json("/v1/objects/Order/1")["customer"].isNull)
    // The missing object is the one that a row refers to, not the row's own.
    let wrong = try ChildProcess.keyway(
      "import", try folder.write("id,first\n1,Order/9\n", to: "first.csv"), "--entity", "Customer", "--id", "id",
      "--server", server.url)
    #expect(wrong.status == 1 && wrong.errors.contains("object Order/9 does not exist"), "\(wrong.errors)")
  }

  @Test("Rows whose ids other texts have made are refused, in CSV and in JSON lines")
  func collisions() throws {
    let imported = try importing(
      "n,text\nA 1,a\nA-1,b\nA 1,c\n,,\n", "--entity", "Note", "--id", "n", "--keep-going")
    let refusal = "rows.csv:3: “A-1” makes the id A-1, which line 2 has made of “A 1”"
    #expect(imported.errors.contains(refusal), "\(imported)")
    #expect(imported.output.contains("imported 2 rows"), "\(imported)")
    #expect(try server.client.json("/v1/objects/Note/A-1")["text"].text == "c")
    let lines = try folder.write(
      #"{"a":"1-2","b":"3","price":1}"# + "\n" + #"{"a":"1","b":"2-3","price":2}"# + "\n", to: "rows.jsonl")
    let refused = try ChildProcess.keyway(
      "import", lines, "--entity", "Quote", "--id", "a", "--id", "b", "--on-conflict", "replace", "--server",
      server.url)
    #expect(
      refused.errors.contains("rows.jsonl:2: “1, 2-3” makes the id 1-2-3, which line 1 has made of “1-2, 3”"),
      "\(refused)")
  }

  @Test("An import that stops names the option that helps, too")
  func stopping() throws {
    let stopped = try importing("quote,shares\nAAPL,5\n", "--entity", "Position")
    #expect(stopped.status == 1)
    #expect(stopped.errors.contains("hint: --reference quote=Quote takes the ids of the column"), "\(stopped.errors)")
  }

  @Test("An error of every row ends an import with --keep-going at the first")
  func everyRow() throws {
    let unknown = try importing("a\n1\n2\n", "--entity", "Planet", "--keep-going")
    #expect(unknown.status == 1 && unknown.errors.contains("404 unknown-entity"), "\(unknown.errors)")
    let broken = try importing("symbol\nA\n\"B\n", "--entity", "Quote", "--id", "symbol", "--keep-going")
    #expect(broken.status == 1 && broken.errors.contains("a quotation mark is never closed"), "\(broken.errors)")
    #expect(try server.client.send("GET", "/v1/objects/Quote/A").status == 200)
  }

  @Test(
    "Options that say nothing here are usage errors",
    arguments: [
      ["--on-conflict", "skip"], ["--delimiter", "ab"], ["--delimiter", "\""], ["--reference", "quote"],
      ["--reference", "quote="],
    ])
  func usage(_ arguments: [String]) throws {
    let outcome = try ChildProcess.run(
      PackageFolder.keyway, ["import", "rows.csv", "--entity", "Quote"] + arguments)
    #expect(outcome.status == 64, "\(outcome.errors)")
  }

  @Test("A lease of seconds goes through an export and an import; one of a stream is dropped, which the export says")
  func leases() throws {
    let stream = try server.client.stream("/v1/streams")
    let name = try #require(try stream.next().json["stream"].text)
    func make(_ id: String, _ lifetime: String) throws {
      try server.client.must("PUT", "/v1/objects/Note/\(id)", ["Keyway-Lifetime": lifetime], body: #"{"text":"x"}"#)
    }
    try make("timed", "3600")
    try make("bound", "stream=\(name)")
    let file = folder.file("notes.jsonl")
    let exported = try ChildProcess.keyway("export", "Note", "--output", file, "--server", server.url)
    #expect(exported.status == 0)
    #expect(exported.errors == "keyway: 1 object ends with a stream; an import creates them without a lifetime\n")
    let other = try ServerProcess(settings: ["seed": "none"])
    let imported = try ChildProcess.keyway("import", file, "--server", other.url)
    #expect(imported.status == 0, "\(imported.errors)")
    #expect(try other.client.json("/v1/objects/Note/timed")["@lifetime"].whole == 3600)
    #expect(try !other.client.json("/v1/objects/Note/bound").has("@lifetime"))
    let again = try ChildProcess.keyway("import", file, "--on-conflict", "replace", "--server", other.url)
    #expect(again.status == 0, "\(again.errors)")
    #expect(try other.client.json("/v1/objects/Note/timed")["@lifetime"].whole == 3600)
    withExtendedLifetime(stream) {}
  }
}
