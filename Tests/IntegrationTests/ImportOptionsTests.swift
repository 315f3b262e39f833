import Foundation
import KeyValueModel
import LoopbackKit
import Testing

@Suite("What the options of an import do") struct ImportOptionsTests {
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

  @Test("An import that stops names the option that helps, too")
  func stopping() throws {
    let stopped = try importing("quote,shares\nAAPL,5\n", "--entity", "Position")
    #expect(stopped.status == 1)
    #expect(stopped.errors.contains("hint: --reference quote=Quote takes the ids of the column"), "\(stopped.errors)")
  }

  @Test("What refuses every row ends an import that keeps going at the first")
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
    #expect(exported.errors == "keyway: 1 object ends with a stream; an import makes them without a lifetime\n")
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
