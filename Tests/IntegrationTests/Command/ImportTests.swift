import Foundation
import TestKit
import Testing

@Suite("Importing real prices while somebody watches")
struct ImportTests {
  private let rows: [[Substring]]

  init() throws {
    let text = try String(contentsOfFile: PackageFolder.stocks, encoding: .utf8)
    rows = text.split(separator: "\n").dropFirst().map { $0.split(separator: ",") }
  }

  @Test("A subscriber sees every price of its symbol, in the order of the file")
  func watching() throws {
    let server = try ServerProcess()
    let symbols = ["MSFT", "AMZN", "IBM", "GOOG", "AAPL"]
    let streams = try symbols.map { try server.client.stream("/v1/objects/Quote/\($0)/price?options=new") }
    let follower = try server.client.stream("/v1/objects/Watch/1/price?options=new")
    let imported = try ChildProcess.keyway(
      "import", PackageFolder.stocks, "--entity", "Quote", "--id", "symbol", "--date-format", "%b %d %Y",
      "--server", server.url)
    #expect(imported.status == 0, "\(imported.errors)")
    #expect(imported.output.hasPrefix("imported 560 rows in "))
    #expect(rows.count == 560)
    for (symbol, stream) in zip(symbols, streams) {
      let expected = rows.filter { $0[0] == symbol }.compactMap { Double($0[2]) }
      let told = try expected.map { _ in try stream.next().changes[0]["new"].double }
      #expect(told == expected, "\(symbol)")
      if symbol == "MSFT" { #expect(told.count == 123) }
    }
    // The observer of AAPL sees the same through the relationship.
    let apple = rows.filter { $0[0] == "AAPL" }.compactMap { Double($0[2]) }
    #expect(try apple.map { _ in try follower.next().changes[0]["new"].double } == apple)
    let last = try server.client.json("/v1/objects/Quote/MSFT")
    #expect(last["price"].double == 28.8)
    #expect(last["date"].text == "2010-03-01")
    #expect(try server.status["objects"].whole == 23)
  }

  @Test("The airports of the example come in as they stand in the file, quotation marks and NA included")
  func airports() throws {
    let server = try ServerProcess()
    let imported = try ChildProcess.keyway(
      "import", PackageFolder.airports, "--entity", "Airport", "--id", "iata", "--server", server.url)
    #expect(imported.status == 0, "\(imported.errors)")
    #expect(imported.output.hasPrefix("imported 3,376 rows in "))
    let airport = try server.client.json("/v1/objects/Airport/DBN")
    #expect(airport["name"].text == #"W. H. "Bud" Barron"# && airport["latitude"].double == 32.56445806)
    let nowhere = try server.client.json("/v1/objects/Airport?filter=state=='NA'&sort=country,-iata&keys=country")
    #expect(nowhere["count"].whole == 12 && nowhere["objects"][0]["country"].text == "Federated States of Micronesia")
    #expect(try server.client.json("/v1/objects/Airport?limit=1&keys=iata")["count"].whole == 3376)
  }

  @Test("A CSV file comes from standard input too")
  func standardInput() throws {
    let server = try ServerProcess()
    let command = "import - --format csv --entity Quote --id symbol --server \(server.url)"
    let imported = try ChildProcess.run(
      "/bin/sh", ["-c", "printf 'symbol,price\\nNEW,2\\n' | \(PackageFolder.keyway) \(command)"])
    #expect(imported.status == 0, "\(imported.errors)")
    #expect(imported.output.hasPrefix("imported 1 row in "))
    #expect(try server.client.json("/v1/objects/Quote/NEW")["price"].double == 2)
  }

  @Test("Rows whose objects are there replace them, unless the import is told to fail or to skip them")
  func conflicts() throws {
    let server = try ServerProcess()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-\(UUID().uuidString).csv")
    try Data("symbol,price\nIBM,1\nNEW,2\n".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    func run(_ rule: String) throws -> (status: Int32, output: String, errors: String) {
      try ChildProcess.keyway(
        "import", file.path, "--entity", "Quote", "--id", "symbol", "--on-conflict", rule, "--server", server.url)
    }
    let failed = try run("fail")
    #expect(failed.status == 1)
    #expect(failed.errors.contains("\(file.path):2: Quote/IBM already exists"), "\(failed.errors)")
    #expect(try run("skip").output.contains("skipped"))
    #expect(try server.client.json("/v1/objects/Quote/IBM/price").double == 125.55)
    #expect(try server.client.json("/v1/objects/Quote/NEW/price").double == 2)
    #expect(try run("replace").output.hasPrefix("imported 2 rows in "))
    #expect(try server.client.json("/v1/objects/Quote/IBM/price").double == 1)
  }

  @Test("A row that the server refuses ends the import with its file, line and reason")
  func refusal() throws {
    let server = try ServerProcess()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-\(UUID().uuidString).csv")
    try Data("symbol,price\nOK,1\nBAD,-1\nLATER,2\n".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let imported = try ChildProcess.keyway(
      "import", file.path, "--entity", "Quote", "--id", "symbol", "--concurrency", "1", "--server", server.url)
    #expect(imported.status == 1)
    #expect(imported.errors.contains("\(file.path):3: 422 invalid-value"))
    #expect(try server.client.send("GET", "/v1/objects/Quote/OK").status == 200)
    #expect(try server.client.send("GET", "/v1/objects/Quote/LATER").status == 404)
  }
}
