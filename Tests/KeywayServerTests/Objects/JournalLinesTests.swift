import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

@Suite("The journal in lines")
struct JournalLinesTests {
  private func lines(_ response: WireResponse) -> [Value] {
    response.text.split(separator: "\n").map { (try? Value(json: String($0))) ?? .null }
  }

  private func revisions(_ response: WireResponse) -> [Int?] { lines(response).map { $0["revision"].whole } }

  @Test("Each transaction is a line, from the oldest on, and the cursor names the last of them")
  func wholeJournal() throws {
    let server = try TestServer()
    try server.client.must(
      "POST", "/v1/transactions", ["Keyway-Writer": "tests"],
      body:
        #"""
        {"operations":[{"op":"set","object":"Account/1","keyPath":"balance","value":7},\#
        {"op":"delete","object":"Account/2"}]}
        """#
    )
    let answer = try server.client.must("GET", "/v1/journal")
    #expect(answer["Content-Type"] == "application/x-ndjson")
    #expect(answer["Keyway-Cursor"] == "\(server.epoch)-8")
    #expect(answer.text.hasSuffix("}\n"))
    #expect(revisions(answer) == Array(1...8))
    let last = try #require(lines(answer).last)
    #expect(last.names == ["revision", "time", "writer", "operations"])
    #expect(last["writer"].text == "tests")
    #expect(last["operations"].items.map { $0["op"].text } == ["set", "delete"])
    #expect(last["operations"][0]["keyPath"].text == "balance")
  }

  @Test("It goes on from a cursor, and at the end has nothing and the same cursor")
  func since() throws {
    let server = try TestServer()
    let rest = try server.client.must("GET", "/v1/journal?since=\(server.epoch)-5", ["Accept": "application/x-ndjson"])
    #expect(revisions(rest) == [6, 7])
    let cursor = try #require(rest["Keyway-Cursor"])
    let nothing = try server.client.must("GET", "/v1/journal?since=\(cursor)", ["Accept": "application/*"])
    #expect(nothing.body.isEmpty)
    #expect(nothing["Keyway-Cursor"] == cursor)
    let head = try server.client.send("HEAD", "/v1/journal")
    #expect(head.status == 200)
    #expect(head["Keyway-Cursor"] == "\(server.epoch)-7")
    #expect(head.body.isEmpty)
  }

  @Test("An answer has no more lines and bytes than it may, and walking on from its cursor gives all of them")
  func bounded() throws {
    let server = try TestServer {
      $0.requests.journalRecords = 3
      $0.requests.journalBytes = 4096
    }
    let long = String(repeating: "x", count: 3000)
    try server.set("Note/1/text", "\"\(long)\(long)\"")
    for _ in 0..<3 { try server.set("Note/1/text", "\"\(long)\"") }
    var found: [Int?] = []
    var counts: [Int] = []
    var cursor = "\(server.epoch)-0"
    while true {
      let answer = try server.client.must("GET", "/v1/journal?since=\(cursor)")
      if answer.body.isEmpty { break }
      #expect(answer.body.count <= 4096 || lines(answer).count == 1)
      found += revisions(answer)
      counts.append(lines(answer).count)
      cursor = try #require(answer["Keyway-Cursor"])
    }
    #expect(found == Array(1...11))
    // Three by number; then the seventh, and the long ones each alone.
    #expect(counts == [3, 3, 1, 1, 1, 1, 1])
    #expect(try revisions(server.client.must("GET", "/v1/journal?since=\(server.epoch)-2&limit=2")) == [3, 4])
  }

  @Test(
    "A cursor that it cannot go on from is gone, and the problem says what to do", arguments: ["x", "", "zzzzzz-1"])
  func unusable(_ cursor: String) throws {
    let server = try TestServer()
    let answer = try server.client.send("GET", "/v1/journal?since=\(cursor)")
    #expect(answer.status == 410)
    #expect(answer.problem == "unusable-cursor")
    #expect(answer.json["detail"].text?.contains("GET /v1/objects") == true)
    #expect(try server.client.send("GET", "/v1/journal?since=\(server.epoch)-8").problem == "unusable-cursor")
    #expect(try server.client.send("GET", "/v1/journal?since=\(server.epoch)-7").status == 200)
  }

  @Test("Dropped records are 410; without a cursor it begins with the oldest record")
  func compacted() throws {
    let server = try TestServer.compacting()
    try server.compactJournal()
    let base = try #require(try server.client.json("/v1/status")["store"]["journal"]["base"].whole)
    let answer = try server.client.send("GET", "/v1/journal?since=\(server.epoch)-\(base - 1)")
    #expect(answer.status == 410)
    #expect(answer.problem == "unusable-cursor")
    let oldest = try server.client.must("GET", "/v1/journal?limit=1")
    #expect((revisions(oldest).first ?? nil) ?? 0 > base)
  }

  @Test("Mistakes are told")
  func mistakes() throws {
    let server = try TestServer()
    for query in ["limit=0", "limit=10001", "limit=x", "limit=", "wait=1", "overflow=maybe&since=x"] {
      let accept = query.hasPrefix("overflow") ? "text/event-stream" : "*/*"
      let answer = try server.client.send("GET", "/v1/journal?\(query)", ["Accept": accept])
      #expect(answer.status == 400, "\(query)")
      #expect(answer.problem == "malformed-query", "\(query)")
    }
    let json = try server.client.send("GET", "/v1/journal", ["Accept": "application/json"])
    #expect(json.status == 406)
    #expect(json["Accept"] == "application/x-ndjson, text/event-stream")
  }
}

extension TestServer {
  /// Makes a server that soon compacts its journal.
  static func compacting(_ configure: (inout KeywayServer.Configuration) -> Void = { _ in }) throws -> TestServer {
    try TestServer {
      $0.store.historyRevisions = 5
      $0.store.snapshotRevisions = 10
      configure(&$0)
    }
  }

  /// Writes until the journal has dropped the present records.
  func compactJournal() throws {
    let written = try revision
    #expect(
      try Deadline().awaits {
        try set("Account/1/visits", "1")
        return try client.json("/v1/status")["store"]["journal"]["base"].whole ?? 0 > written
      })
  }
}
