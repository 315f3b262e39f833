import KeyValueModel
import KeywayServer
import TestKit
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

  @Test("page alone is enough: it shows what the first page was asked for, and Link names it with the whole query")
  func pageAlone() throws {
    let server = try filled(5)
    let query = "filter=text%20!%3D%20%223%22&sort=-text&keys=text&limit=2"
    let first = try server.client.must("GET", "/v1/objects/Note?\(query)")
    let next = try #require(first.json["next"].text)
    #expect(
      first["Link"]
        == "</v1/objects/Note?filter=text%20%21%3D%20%223%22&sort=-text&keys=text&limit=2&page=\(next)>; rel=\"next\"")
    let link = try #require(first["Link"]?.dropFirst().split(separator: ">").first)
    let rows = #""objects":[{"@ref":"Note/11","@revision":2,"text":"1"},{"@ref":"Note/10","@revision":1,"text":"0"}]}"#
    for target in ["/v1/objects/Note?page=\(next)", String(link), "/v1/objects/Note?keys=text&page=\(next)"] {
      let second = try server.client.must("GET", target)
      #expect(second.jsonText?.hasSuffix(rows) == true, "\(second.text)")
      #expect(second["Link"] == nil && !second.json.has("next"))
    }
    let shorter = try server.client.must("GET", "/v1/objects/Note?limit=1&page=\(next)")
    #expect(shorter.json["objects"].items.count == 1 && shorter["Link"]?.contains("&limit=1&page=") == true)
    for other in ["sort=text", "filter=true", "keys=tags", "expand=parent", "section=text"] {
      #expect(try server.client.send("GET", "/v1/objects/Note?\(other)&page=\(next)").problem == "malformed-query")
    }
  }

  @Test("The pages of all objects follow each other by page and Link alone; a long query is left out of Link")
  func links() throws {
    let server = try filled(5)
    var target = "/v1/objects?entities=Note&limit=2"
    var counts: [Int] = []
    while true {
      let page = try server.client.must("GET", target)
      counts.append(page.json["objects"].items.count)
      guard let link = page["Link"] else { break }
      target = String(link.dropFirst().prefix { $0 != ">" })
    }
    #expect(counts == [2, 2, 1])
    let filter = "text%20!%3D%20%22\(String(repeating: "x", count: 500))%22"
    let long = try server.client.must("GET", "/v1/objects/Note?filter=\(filter)&limit=4")
    let next = try #require(long.json["next"].text)
    #expect(long["Link"] == "</v1/objects/Note?limit=4&page=\(next)>; rel=\"next\"")
    #expect(try server.client.json("/v1/objects/Note?limit=4&page=\(next)")["objects"].items.count == 1)
  }

  @Test("limit=0 gives no rows, and what all of them come to")
  func totalsAlone() throws {
    let server = try filled(3)
    let fetch = try server.client.must("GET", "/v1/objects/Note?limit=0&aggregate=@count")
    #expect(fetch.jsonText == #"{"revision":3,"count":3,"total":3,"objects":[],"aggregates":{"@count":3}}"#)
    #expect(fetch["Link"] == nil)
    #expect(try server.client.json("/v1/objects?limit=0")["total"].whole == 3)
    let stream = try server.client.stream("/v1/objects/Note?limit=0&filter=text%20!%3D%20%221%22")
    let results = try stream.next().json
    #expect(results["objects"].items.isEmpty && results["count"].whole == 0 && results["total"].whole == 2)
    try server.client.must("DELETE", "/v1/objects/Note/10")
    let content = try stream.next().json
    #expect(content["changes"].items.isEmpty && content["count"].whole == 0 && content["total"].whole == 1)
    let cells = try server.client.stream(
      "/v1/streams", ["Content-Type": "application/json"], method: "POST",
      body: #"{"cells":{"q":{"entity":"Note","limit":0}}}"#)
    #expect(try cells.next().name == "open" && cells.next().json["total"].whole == 2)
    #expect(try server.client.send("GET", "/v1/objects/Note?limit=-1").problem == "malformed-query")
    #expect(try server.client.send("GET", "/v1/journal?limit=0").problem == "malformed-query")
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
