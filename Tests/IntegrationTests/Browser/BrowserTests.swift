import KeyValueModel
import TestKit
import Testing

@Suite("EventSource of Chromium")
struct BrowserTests {
  @Test("It is told the state and each change, and over a cut in the midst of writing nothing is lost or doubled")
  func reconnecting() throws {
    let server = try ServerProcess()
    let proxy = try FaultyProxy(to: server.port)
    let browser = try ChildProcess.start(
      PackageFolder.python,
      [
        PackageFolder.script("eventsource.py"), proxy.url + "/healthz",
        "/v1/objects/Account/1/openingBalance,balance?options=initial,new", "/v1/streams",
      ])
    _ = try events(browser) { $0.contains { $0["data"].has("initial") } && $0.contains { $0["event"].text == "open" } }
    for value in 1...20 { try server.set("Account/1/balance", "\(value)") }
    _ = try events(browser) { news($0).last == 20 }
    // While the connection is down EventSource retries by itself, after the time in `retry:`.
    proxy.refuse()
    for value in 21...40 { try server.set("Account/1/balance", "\(value)") }
    _ = try events(browser) { $0.contains { $0["event"].text == "ERROR" } }
    try proxy.accept()
    for value in 41...60 { try server.set("Account/1/balance", "\(value)") }
    _ = try events(browser) { news($0).contains(60) }
    // Cut again during the writes, and restored at once.
    for value in 61...100 {
      try server.set("Account/1/balance", "\(value)")
      if value == 80 {
        proxy.refuse()
        try proxy.accept()
      }
    }
    let told = try events(browser) { news($0).contains(100) }
    let changes = told.filter { $0["stream"].whole == 0 && $0["event"].text == "change" }
    #expect(news(told) == (1...100).map(Double.init))
    #expect(Set(changes.map { $0["id"].text }).count == changes.count)
    #expect(changes.filter { $0["data"].has("initial") }.count == 1)
    #expect(told.filter { $0["stream"].whole == 0 && $0["event"].text == "CONNECTED" }.count == 3)
    #expect(!told.contains { $0["event"].text == "reset" })
    browser.send(15)
    #expect(try browser.exitStatus() == 0)
    #expect(try server.hasNoStreams())
    #expect(try server.stop() == 0)
  }

  @Test("It comes back by itself to the URL of a stream with cells, and over cuts nothing is lost or doubled")
  func comingBackToCells() throws {
    let server = try ServerProcess()
    let proxy = try FaultyProxy(to: server.port)
    let opened = try server.client.stream(
      "/v1/streams", ["Content-Type": "application/json"], method: "POST",
      body: #"{"cells":{"a":{"object":"Account/1","keyPaths":["balance"]},"b":{"object":"Person/7"}}}"#)
    let url = try #require(try opened.next().json["url"].text)
    let browser = try ChildProcess.start(
      PackageFolder.python, [PackageFolder.script("eventsource.py"), proxy.url + "/healthz", url])
    _ = try events(browser) { $0.contains { $0["data"].has("initial") } }
    for value in 1...20 { try server.set("Account/1/balance", "\(value)") }
    _ = try events(browser) { news($0).last == 20 }
    proxy.refuse()
    for value in 21...40 { try server.set("Account/1/balance", "\(value)") }
    _ = try events(browser) { $0.contains { $0["event"].text == "ERROR" } }
    try proxy.accept()
    _ = try events(browser) { news($0).contains(40) }
    // A cell that is bound meanwhile belongs to the stream too.
    try server.client.must(
      "PUT", "\(url)/cells/c", body: #"{"object":"Account/1","keyPaths":["balance"],"options":["new"]}"#)
    for value in 41...80 {
      try server.set("Account/1/balance", "\(value)")
      if value == 60 {
        proxy.refuse()
        try proxy.accept()
      }
    }
    let told = try events(browser) { news($0).contains(80) }
    let twice = (41...80).flatMap { [Double($0), Double($0)] }
    #expect(news(told) == (1...40).map(Double.init) + twice)
    #expect(told.filter { $0["data"].has("initial") }.count == 1)
    #expect(told.filter { $0["event"].text == "CONNECTED" }.count == 3)
    #expect(Set(told.filter { $0["event"].text == "open" }.map { $0["data"]["url"].text }) == [url])
    #expect(!told.contains { ["reset", "bye"].contains($0["event"].text) })
    browser.send(15)
    #expect(try browser.exitStatus() == 0)
    #expect(try server.hasNoStreams())
    #expect(try server.stop() == 0)
  }

  private func events(_ browser: ChildProcess, until isEnough: ([Value]) -> Bool) throws -> [Value] {
    let parse = { (lines: [String]) in lines.map { (try? Value(json: $0)) ?? .null } }
    return try parse(browser.lines { isEnough(parse($0)) })
  }

  /// Returns the balances after the first state.
  private func news(_ events: [Value]) -> [Double] {
    events.filter { $0["stream"].whole == 0 && $0["event"].text == "change" && !$0["data"].has("initial") }
      .flatMap { $0["data"]["changes"].items }.compactMap { $0["new"].double }
  }
}
