import Foundation
import KeyValueModel
import TestKit
import Testing

/// The example's portfolio: `sum(positions.map(p, p.shares * p.quote.price))`, over real prices.
@Suite("A live portfolio")
struct PortfolioTests {
  private let server: ServerProcess

  init() throws { server = try ServerProcess() }

  /// A position, as the test expects it.
  private struct Position {
    var shares: Double
    var quote: String
  }

  private static let positions = [
    Position(shares: 10, quote: "AAPL"), Position(shares: 25, quote: "MSFT"), Position(shares: 4, quote: "IBM"),
  ]

  /// Returns the value of the positions: each product as a double, as in the expression, and their sum in decimal.
  private func value(_ positions: [Position], _ prices: [String: Double]) -> Double? {
    let total = positions.reduce(Decimal(0)) { sum, position in
      sum + (Decimal(string: "\(position.shares * (prices[position.quote] ?? .nan))") ?? .nan)
    }
    return Double("\(total)")
  }

  private func importPrices() throws {
    let imported = try ChildProcess.keyway(
      "import", PackageFolder.stocks, "--entity", "Quote", "--id", "symbol", "--date-format", "%b %d %Y",
      "--server", server.url)
    #expect(imported.status == 0, "\(imported.errors)")
  }

  /// Reads the next change of the portfolio's value. Returns its old and new value.
  private func told(_ stream: WireStream) throws -> (old: Double?, new: Double?) {
    let changes = try stream.next().changes
    #expect(changes.count == 1 && changes[0]["kind"].text == "setting" && !changes[0].has("indexes"))
    return (changes[0]["old"].double, changes[0]["new"].double)
  }

  @Test("Every price of the file that is of one of its shares moves the value, and the last is what they come to")
  func everyPrice() throws {
    let rows = try String(contentsOfFile: PackageFolder.stocks, encoding: .utf8).split(separator: "\n").dropFirst()
      .map { $0.split(separator: ",") }
    let stream = try server.client.stream("/v1/objects/Portfolio/1/value?options=old,new")
    try importPrices()
    let symbols = Set(Self.positions.map(\.quote))
    let held = rows.filter { symbols.contains(String($0[0])) }
    var last = try #require(value(Self.positions, ["AAPL": 223.02, "MSFT": 28.8, "IBM": 125.55]))
    #expect(held.count == 369)
    for _ in held {
      let (old, new) = try told(stream)
      #expect(old == last)
      last = try #require(new)
    }
    #expect(last == 3452.4)
    #expect(try server.client.json("/v1/objects/Portfolio/1/value").double == last)
  }

  // The prices are such that their products with the shares are the same in decimal: 10 times 223.02, as doubles, is
  // 2230.2000000000003.
  @Test("A price that is set moves the value by shares times difference, to the cent")
  func prices() throws {
    try importPrices()
    let stream = try server.client.stream("/v1/objects/Portfolio/1/value?options=old,new")
    let steps: [(symbol: String, price: String, shares: Decimal, difference: String)] = [
      ("AAPL", "223.12", 10, "0.10"), ("MSFT", "28.79", 25, "-0.01"), ("IBM", "125.55", 4, "0"),
      ("IBM", "125.58", 4, "0.03"), ("AAPL", "0.1", 10, "-223.02"), ("MSFT", "1000000.01", 25, "999971.22"),
      ("MSFT", "28.79", 25, "-999971.22"), ("AAPL", "225", 10, "224.9"),
    ]
    for (symbol, price, shares, difference) in steps {
      try server.set("Quote/\(symbol)/price", price)
      let (old, new) = try told(stream)
      let before = try #require(old.flatMap { Decimal(string: "\($0)") })
      let after = try #require(new.flatMap { Decimal(string: "\($0)") })
      #expect(after - before == shares * (try #require(Decimal(string: difference))), "\(symbol) \(price)")
    }
    // A price without a position changes nothing: the next event is that of the next price.
    try server.set("Quote/GOOG/price", "1")
    try server.set("Quote/IBM/price", "1")
    #expect(try stream.next().json["revision"].whole == server.revision)
  }

  @Test("Positions that come, change and go move it; what has gone moves it no more")
  func positions() throws {
    var positions = Self.positions
    var prices = ["AAPL": 223.02, "MSFT": 28.8, "IBM": 125.55, "GOOG": 560.19]
    let stream = try server.client.stream("/v1/objects/Portfolio/1/value?options=old,new")
    var last = try #require(value(positions, prices))
    func expectTold(_ line: Int = #line) throws {
      let (old, new) = try told(stream)
      #expect(old == last, "line \(line)")
      last = try #require(value(positions, prices))
      #expect(new == last, "line \(line)")
    }
    let target = "/v1/objects/Portfolio/1/positions"
    try server.client.must(
      "POST", "\(target)?index=0", body: #"{"@ref":"Position/9","shares":2.5,"quote":"Quote/GOOG"}"#)
    positions.append(Position(shares: 2.5, quote: "GOOG"))
    try expectTold()
    try server.set("Position/9/shares", "0.1")
    positions[3].shares = 0.1
    try expectTold()
    try server.set("Position/9/quote", #""Quote/MSFT""#)
    positions[3].quote = "MSFT"
    try expectTold()
    try server.set("Quote/MSFT/price", "0.2")
    prices["MSFT"] = 0.2
    try expectTold()
    try server.client.must("DELETE", "\(target)?object=Position/9")
    positions.removeLast()
    try expectTold()
    try server.set("Position/9/shares", "1000")
    try server.set("Quote/GOOG/price", "1")
    try server.client.must("DELETE", "/v1/objects/Position/3")
    positions.removeLast()
    try expectTold()
    try server.client.must(
      "POST", "/v1/transactions",
      body: """
        {"operations":[{"op":"willChange","object":"Portfolio/1","key":"positions"},
        {"op":"insert","object":"Portfolio/1","keyPath":"positions","value":"Position/9"},
        {"op":"set","object":"Position/9","keyPath":"shares","value":1},
        {"op":"didChange","object":"Portfolio/1","key":"positions"}]}
        """)
    positions.append(Position(shares: 1, quote: "MSFT"))
    let changes = try stream.next().changes
    #expect(changes.last?["new"].double == value(positions, prices))
    try server.set("Portfolio/1/positions", "[]")
    #expect(try stream.next().changes.last?["new"].double == 0)
  }

  @Test("A position whose quote or price is not there leaves no value to show, until it is there again")
  func missing() throws {
    let stream = try server.client.stream("/v1/objects/Portfolio/1/value?options=new")
    let hundred = value(Self.positions, ["AAPL": 223.02, "MSFT": 28.8, "IBM": 100])
    let without = value(Self.positions, ["AAPL": 223.02, "MSFT": 28.8, "IBM": 0])
    let steps: [(path: String, json: String, value: Double?)] = [
      ("Quote/IBM/price", "null", nil), ("Quote/IBM/price", "100", hundred), ("Position/3/quote", "null", nil),
      ("Position/3/quote", #""Quote/IBM""#, hundred), ("Position/3/shares", "null", nil),
      ("Position/3/shares", "0", without),
    ]
    for (path, json, value) in steps {
      try server.set(path, json)
      let change = try stream.next().changes[0]
      #expect(change.has("new") && change["new"].double == value, "\(path) \(json)")
    }
    try server.client.must("DELETE", "/v1/objects/Quote/AAPL")
    #expect(try stream.next().changes.map { $0["new"].json } == ["null"])
  }
}
