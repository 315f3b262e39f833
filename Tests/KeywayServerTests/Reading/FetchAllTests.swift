import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("A fetch of all objects")
struct FetchAllTests {
  private static let references = [
    "Person/1", "Person/2", "Employee/1", "Department/1", "Account/1", "Account/2", "Note/1",
  ]

  private func references(_ page: Value) -> [String] { page["objects"].items.compactMap { $0["@ref"].text } }

  @Test("Entities come in the order of the schema, their objects in that of the references, each once")
  func order() throws {
    let server = try TestServer()
    let response = try server.client.must("GET", "/v1/objects")
    #expect(references(response.json) == Self.references)
    #expect(response.json["revision"].whole == 7)
    #expect(response.json["count"].whole == 7)
    #expect(response.json.has("next") == false)
    #expect(response["Keyway-Cursor"] == "\(server.epoch)-7")
    #expect(response.json["objects"][4] == (try server.client.json("/v1/objects/Account/1")))
  }

  @Test("An empty store has a page without objects")
  func empty() throws {
    let response = try TestServer(objects: []).client.must("GET", "/v1/objects")
    #expect(response.jsonText == #"{"revision":0,"count":0,"total":0,"objects":[]}"#)
  }

  @Test("entities picks some, with what extends them; a name that is none is unknown-entity")
  func someEntities() throws {
    let server = try TestServer()
    let some = try server.client.json("/v1/objects?entities=Note,Person")
    #expect(references(some) == ["Person/1", "Person/2", "Employee/1", "Note/1"])
    #expect(try references(server.client.json("/v1/objects?entities=Employee")) == ["Employee/1"])
    let unknown = try server.client.send("GET", "/v1/objects?entities=Note,Planet")
    #expect(unknown.status == 404)
    #expect(unknown.problem == "unknown-entity")
  }

  @Test("All pages show one state, whatever is written between them")
  func oneState() throws {
    let server = try TestServer()
    var found: [String] = []
    var balances: [Double] = []
    var next: String? = ""
    while let page = next {
      let body = try server.client.json("/v1/objects?limit=3" + (page.isEmpty ? "" : "&page=\(page)"))
      #expect(body["revision"].whole == 7)
      #expect(body["count"].whole == 7)
      found += references(body)
      balances += body["objects"].items.compactMap { $0["balance"].double }
      next = body["next"].text
      try server.set("Account/1/balance", "7")
      try server.client.send("DELETE", "/v1/objects/Note/1")
      try server.client.must("PUT", "/v1/objects/Department/\(found.count)9", body: "{}")
    }
    #expect(found == Self.references)
    #expect(balances == [100, 40])
  }

  @Test("A page that is no longer kept is page-expired, and one of another fetch malformed-query")
  func pages() throws {
    let server = try TestServer { $0.pages.fetches = 1 }
    let first = try #require(server.client.json("/v1/objects?limit=2")["next"].text)
    let second = try #require(server.client.json("/v1/objects?limit=2")["next"].text)
    let expired = try server.client.send("GET", "/v1/objects?limit=2&page=\(first)")
    #expect(expired.status == 410)
    #expect(expired.problem == "page-expired")
    for target in ["/v1/objects?entities=Note&page=\(second)", "/v1/objects/Note?page=\(second)"] {
      #expect(try server.client.send("GET", target).problem == "malformed-query")
    }
  }

  @Test("Keys are picked for one entity only, and there is no stream of everything")
  func refusals() throws {
    let server = try TestServer()
    #expect(try server.client.send("GET", "/v1/objects?keys=text").problem == "malformed-query")
    #expect(try server.client.send("GET", "/v1/objects?limit=-1").problem == "malformed-query")
    let stream = try server.client.send("GET", "/v1/objects", ["Accept": "text/event-stream"])
    #expect(stream.status == 406)
    #expect(stream["Accept"] == "application/json")
  }

  @Test("A transaction accepts the same values as a PUT of a key: its own levels of JSON do not count")
  func depth() throws {
    let server = try TestServer()
    let deep = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
    try server.set("Note/1/tags", deep)
    try server.commit(#"{"op":"create","object":"Note/2","value":{"tags":\#(deep)}}"#)
    #expect(try server.client.send("GET", "/v1/objects/Note/2/tags").jsonText == deep)
    let deeper = try server.client.send(
      "POST", "/v1/transactions",
      body: #"{"operations":[{"op":"create","object":"Note/3","value":{"tags":[\#(deep)]}}]}"#)
    #expect(deeper.problem == "malformed-json")
  }
}
