import KeyValueModel
import KeywayAPI
import LoopbackKit
import Testing

@Suite("Fetches and their pages")
struct FetchTests {
  private func filled(
    _ count: Int, _ configure: (inout KeywayServer.Configuration) -> Void = { _ in }
  ) throws -> TestServer {
    let objects = (0..<count).map { ("Note/\($0 + 10)", #"{"text":"\#($0)"}"#) }
    return try TestServer(objects: objects, configure)
  }

  @Test("A fetch gives revision, count and the objects in the order of their references")
  func whole() throws {
    let server = try filled(3)
    let response = try server.client.must("GET", "/v1/objects/Note?keys=text")
    #expect(
      response.jsonText == #"{"revision":3,"count":3,"total":3,"objects":[{"@ref":"Note/10","@revision":1,"text":"0"},"#
        + #"{"@ref":"Note/11","@revision":2,"text":"1"},{"@ref":"Note/12","@revision":3,"text":"2"}]}"#)
    #expect(response["Keyway-Cursor"] == "\(server.epoch)-3")
  }

  @Test("All pages of a fetch show one state, whatever is written between them")
  func oneState() throws {
    let server = try filled(7)
    var pages: [Value] = []
    var next: String? = ""
    while let page = next {
      let suffix = page.isEmpty ? "" : "&page=\(page)"
      let body = try server.client.json("/v1/objects/Note?limit=3\(suffix)")
      pages.append(body)
      next = body["next"].text
      try server.set("Note/16/text", #""changed""#)
      try server.client.send("DELETE", "/v1/objects/Note/13")
      try server.client.must("PUT", "/v1/objects/Note/1\(pages.count)5", body: "{}")
    }
    #expect(pages.map { $0["objects"].items.count } == [3, 3, 1])
    #expect(pages.map { $0["revision"].whole } == [7, 7, 7])
    #expect(pages.map { $0["count"].whole } == [7, 7, 7])
    let texts = pages.flatMap { $0["objects"].items.compactMap { $0["text"].text } }
    #expect(texts == ["0", "1", "2", "3", "4", "5", "6"])
    #expect(pages.last?.has("next") == false)
  }

  @Test("A fetch with section gives on every page the sections of all rows, as the stream of the same URL does")
  func sections() throws {
    let server = try Staff.server()
    let target = Staff.target("Employee", ["section": "department.name", "sort": "-salary"])
    let results = try server.client.stream(target).next().json
    let rows = results["objects"].items.compactMap { $0["@ref"].text }
    #expect(results["sections"].items.count > 1 && results["sections"][0]["name"].isNull)
    var found: [String] = []
    var next: String? = ""
    while let page = next {
      let body = try server.client.json(target + "&limit=2" + (page.isEmpty ? "" : "&page=\(page)"))
      #expect(body["sections"].json == results["sections"].json)
      #expect(body["count"].whole == rows.count)
      found += body["objects"].items.compactMap { $0["@ref"].text }
      next = body["next"].text
    }
    #expect(found == rows)
    #expect(try !server.client.json("/v1/objects/Employee?sort=name").has("sections"))
    let none = try server.client.json(Staff.target("Employee", ["section": "name", "filter": "false"]))
    #expect(none["sections"].json == "[]")
  }

  @Test("Sections of dates are what the dates say, not the moments, and come together")
  func sectionsOfDates() throws {
    let dates = ["2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00"]
    let objects = dates.enumerated().map { index, date in
      ("Person/\(index)", #"{"firstName":"a","lastName":"b","born":"\#(date)"}"#)
    }
    let server = try TestServer(objects: objects)
    let target = "/v1/objects/Person?section=born"
    let body = try server.client.json(target)
    let results = try server.client.stream(target).next().json
    #expect(body["sections"].json == results["sections"].json)
    #expect(body["sections"].items.map { $0["count"].whole } == [1, 2])
    #expect(body["objects"].items.map { $0["@ref"].text } == results["objects"].items.map { $0["@ref"].text })
  }

  @Test("A client's next fetch pushes out its own oldest, and none of another client")
  func shares() throws {
    let server = try filled(4) {
      $0.pages.clientFetches = 2
      $0.pages.fetches = 4
    }
    let target = "/v1/objects/Note?limit=2"
    let neighbour = Neighbour(port: server.client.port)
    let first = try neighbour.send("GET", target)
    let other = try #require(first.firstMatch(of: /"next":"([^"]+)"/)).1
    let own = try (0..<20).map { _ in try #require(server.client.json(target)["next"].text) }
    #expect(try neighbour.send("GET", "\(target)&page=\(other)").hasPrefix("HTTP/1.1 200"))
    for (index, word) in own.enumerated() {
      let status = try server.client.send("GET", "/v1/objects/Note?limit=2&page=\(word)").status
      #expect(status == (index < 18 ? 410 : 200), "\(index)")
    }
  }

  @Test("A fetch that is too large to be kept is refused where it has a next page, and answered where it has none")
  func tooLarge() throws {
    let server = try filled(40) { $0.pages.bytes = 600 }
    let refused = try server.client.send("GET", "/v1/objects/Note?limit=2")
    #expect(refused.status == 503 && refused.problem == "overloaded" && refused["Retry-After"] != nil)
    #expect(try server.client.json("/v1/objects/Note")["objects"].items.count == 40)
  }

  @Test("A page of a fetch that had to make room is 410 page-expired, and so is one that never was")
  func expired() throws {
    let server = try filled(4) { $0.pages.fetches = 1 }
    let first = try #require(server.client.json("/v1/objects/Note?limit=2")["next"].text)
    _ = try server.client.json("/v1/objects/Note?limit=2")
    for page in [first, "abc.2"] {
      let response = try server.client.send("GET", "/v1/objects/Note?limit=2&page=\(page)")
      #expect(response.status == 410)
      #expect(response.problem == "page-expired")
    }
  }

  @Test("A page cannot be continued as another fetch")
  func otherFetch() throws {
    let server = try filled(4)
    let next = try #require(server.client.json("/v1/objects/Note?limit=2")["next"].text)
    for target in ["/v1/objects/Person?page=\(next)", "/v1/objects/Note?keys=text&page=\(next)"] {
      #expect(try server.client.send("GET", target).problem == "malformed-query")
    }
  }

  @Test("limit has a bound, which holds where none is asked for")
  func limit() throws {
    let server = try filled(5) { $0.pages.objects = 4 }
    #expect(try server.client.json("/v1/objects/Note")["objects"].items.count == 4)
    #expect(try server.client.send("GET", "/v1/objects/Note?limit=5").problem == "malformed-query")
  }
}
