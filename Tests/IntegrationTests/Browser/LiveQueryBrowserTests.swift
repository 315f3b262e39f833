import Foundation
import KeyValueModel
import OrderedCollections
import TestKit
import Testing

@Suite("Live queries in Chromium")
struct LiveQueryBrowserTests {
  /// A query as a page observes it, and the same as a fetch, which has no sections but can have their order.
  private struct Query {
    var filter: String
    var stream: String
    var fetch: String
    var sectionKey: String?

    var streamPath: String { "/v1/objects/Airport?filter=\(escaped)&\(stream)" }
    var fetchPath: String { "/v1/objects/Airport?filter=\(escaped)&\(fetch)" }

    private var escaped: String { filter.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "" }
  }

  private static let queries = [
    Query(
      filter: "state == 'TX' && latitude > 29.0", stream: "sort=city,-name&limit=40",
      fetch: "sort=city,-name&limit=40"),
    Query(
      filter: "state in ['AA', 'NM', 'OK', 'TX'] && latitude > 33.0", stream: "sort=-latitude&section=state",
      fetch: "sort=state,-latitude&limit=1000", sectionKey: "state"),
  ]

  @Test("A list that is told of 1,000 random commits, over a cut, is in the end what a fetch gives")
  func following() throws {
    let server = try ServerProcess(settings: ["heartbeat.seconds": "1"])
    let imported = try ChildProcess.keyway(
      "import", PackageFolder.airports, "--entity", "Airport", "--id", "iata", "--server", server.url)
    #expect(imported.status == 0, "\(imported.errors)")
    let proxy = try FaultyProxy(to: server.port)
    let browser = try ChildProcess.start(
      PackageFolder.python,
      [PackageFolder.script("livelist.py"), proxy.url + "/healthz"] + Self.queries.map(\.streamPath))
    try awaits(try server.cursor, by: browser)
    var airports = try RandomAirports(server.client, states: ["TX", "NM", "OK"], count: 40, seed: seed)
    for number in 1...1000 {
      try airports.commit()
      if number == 500 {
        proxy.refuse()
        try proxy.accept()
      }
    }
    // If the last commits sent no events, the next heartbeat brings the cursor.
    try awaits(try server.cursor, by: browser)
    browser.send(SIGUSR1)
    let lists = try lines(of: browser) { lines in
      lines.filter { $0.has("sections") }.count == Self.queries.count
    }.filter { $0.has("sections") }
    for (query, list) in zip(Self.queries, lists) { try compare(list, query, server) }
    browser.send(SIGTERM)
    #expect(try browser.exitStatus() == 0)
    #expect(try server.hasNoStreams())
    #expect(try server.stop() == 0)
  }

  private func compare(_ list: Value, _ query: Query, _ server: ServerProcess) throws {
    let fetch = try server.client.json(query.fetchPath)
    let rows = list["sections"].items.flatMap { $0["rows"].items }
    let objects = fetch["objects"].items
    #expect(list["errors"].items.isEmpty, "seed \(seed): \(query.stream)")
    #expect(!objects.isEmpty && (query.sectionKey == nil || !fetch.has("next")), "seed \(seed): the page is not all")
    #expect(rows.map { $0["@ref"].text } == objects.map { $0["@ref"].text }, "seed \(seed): \(query.stream)")
    #expect(rows.map(withoutRevision) == objects.map(withoutRevision), "seed \(seed): \(query.stream)")
    guard let key = query.sectionKey else { return }
    for section in list["sections"].items {
      #expect(section["rows"].items.allSatisfy { $0[key] == section["name"] }, "seed \(seed): \(section["name"].json)")
    }
    let names = list["sections"].items.map { $0["name"].json }
    #expect(names == objects.map { $0[key].json }.reduce(into: []) { if $0.last != $1 { $0.append($1) } })
  }

  private func withoutRevision(_ value: Value) -> Value {
    guard case .object(var object) = value else { return value }
    object["@revision"] = nil
    return .object(object)
  }

  /// Waits until each list of the page has reached a cursor, without an error.
  private func awaits(_ cursor: String, by browser: ChildProcess) throws {
    _ = try lines(of: browser) { lines in
      Self.queries.indices.allSatisfy { stream in
        let last = lines.last { $0["stream"].whole == stream }
        return last?["id"].text == cursor || last?["errors"].items.isEmpty == false
      }
    }
  }

  private func lines(of browser: ChildProcess, until isEnough: ([Value]) -> Bool) throws -> [Value] {
    let parse = { (lines: [String]) in lines.map { (try? Value(json: $0)) ?? .null } }
    return try parse(browser.lines { isEnough(parse($0)) })
  }
}
