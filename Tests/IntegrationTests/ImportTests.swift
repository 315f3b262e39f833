import Foundation
import Testing
import WireTesting

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
    // AAPL's watcher sees the same through the relationship.
    let apple = rows.filter { $0[0] == "AAPL" }.compactMap { Double($0[2]) }
    #expect(try apple.map { _ in try follower.next().changes[0]["new"].double } == apple)
    let last = try server.client.json("/v1/objects/Quote/MSFT")
    #expect(last["price"].double == 28.8)
    #expect(last["date"].text == "2010-03-01")
    #expect(try server.status["objects"].whole == 14)
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
