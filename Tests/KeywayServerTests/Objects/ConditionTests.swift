import KeyValueModel
import TestKit
import Testing

@Suite("Conditions and entity tags")
struct ConditionTests {
  private let server: TestServer
  private let path = "/v1/objects/Account/1"

  init() throws { server = try TestServer() }

  private func tag(_ target: String) throws -> String {
    try #require(server.client.must("GET", target)["ETag"])
  }

  @Test(
    "A 304 names the length that the content has, and no other; so does HEAD",
    arguments: [
      "/v1/objects/Account/1", "/v1/objects/Account/1?keys=balance", "/v1/objects/Account/1/balance",
      "/v1/objects/Account/1/balance,owner.lastName", "/keyway.js",
    ])
  func length(target: String) throws {
    let whole = try server.client.must("GET", target)
    #expect(whole["Content-Length"] == "\(whole.body.count)" && !whole.body.isEmpty)
    let unchanged = try server.client.send("GET", target, ["If-None-Match": try tag(target)])
    #expect(unchanged.status == 304 && unchanged["Content-Length"] == whole["Content-Length"])
    #expect(unchanged["Content-Type"] == nil)
    #expect(try server.client.send("HEAD", target)["Content-Length"] == whole["Content-Length"])
  }

  @Test("If-None-Match of the present tag is 304 without a body, also weak, in a list, and as *")
  func notModified() throws {
    let tag = try tag(path)
    for condition in [tag, "W/\(tag)", "\"x-1\", \(tag)", "*"] {
      let response = try server.client.send("GET", path, ["If-None-Match": condition])
      #expect(response.status == 304, "\(condition)")
      #expect(response["ETag"] == tag)
      #expect(response["Keyway-Cursor"] != nil)
    }
    try server.set("Account/1/balance", "7")
    #expect(try server.client.send("GET", path, ["If-None-Match": tag]).status == 200)
  }

  @Test("The tag of an object follows what its computed keys read, and nothing else")
  func tagFollowsComputedKeys() throws {
    let before = try tag(path)
    try server.set("Account/2/balance", "1")
    try server.set("Person/2/lastName", #""X""#)
    #expect(try tag(path) == before)
    try server.set("Person/1/lastName", #""Byron""#)
    let after = try tag(path)
    #expect(after != before)
    #expect(try server.client.json(path)["@revision"].whole != server.revision)
    try server.set("Account/1/owner", "null")
    try server.set("Person/1/lastName", #""Z""#)
    #expect(try tag(path) == "\"\(server.epoch)-\(server.revision - 1)\"")
  }

  @Test("The tag of a key path follows the objects along it")
  func tagOfKeyPath() throws {
    let target = path + "/owner.lastName"
    let before = try tag(target)
    try server.set("Person/1/firstName", #""A""#)
    #expect(try tag(target) != before)
    let middle = try tag(target)
    try server.set("Account/1/balance", "5")
    #expect(try tag(target) != middle)
    #expect(try tag("/v1/objects/Person/1/lastName") == middle)
  }

  @Test("If-Match with the present tag, a newer cursor, a list that has it, or * lets a write through")
  func matching() throws {
    for form in ["tag", "newer", "list", "any"] {
      let tag = try tag(path)
      try server.set("Person/2/lastName", #""N""#)
      let newer = "\"\(server.epoch)-\(try server.revision)\""
      let condition = ["tag": tag, "newer": newer, "list": "\"a-1\", \(tag)", "any": "*"][form] ?? ""
      let response = try server.client.send("PUT", path + "/balance", ["If-Match": condition], body: "\(tag.count)")
      // The tag of the key path is that of its object here.
      #expect(response.status == 200, "\(form): \(response.text)")
    }
  }

  @Test("A stale, weak, foreign or future tag is 412 with the present ETag, and changes nothing")
  func stale() throws {
    let old = try tag(path)
    try server.set("Account/1/balance", "101")
    let present = try tag(path)
    let revision = try server.revision
    let bodies = [("PUT", #"{"balance":1}"#), ("PATCH", #"{"balance":1}"#), ("DELETE", nil)]
    for condition in [old, "W/\(present)", "\"zzz-1\"", "\"\(server.epoch)-99999\""] {
      for (method, body) in bodies {
        let response = try server.client.send(method, path, ["If-Match": condition], body: body)
        #expect(response.status == 412, "\(method) \(condition)")
        #expect(response.problem == "stale-revision")
        #expect(response["ETag"] == present)
      }
      for (method, body) in [("PUT", "1"), ("DELETE", nil)] {
        let response = try server.client.send(method, path + "/balance", ["If-Match": condition], body: body)
        #expect(response.status == 412)
        #expect(response["ETag"] == (try tag(path + "/balance")))
      }
    }
    #expect(try server.revision == revision)
  }

  @Test("If-Match on an object that is not there is 412, also *")
  func matchOfNothing() throws {
    for condition in ["*", "\"\(server.epoch)-1\""] {
      let response = try server.client.send("PUT", "/v1/objects/Account/77", ["If-Match": condition], body: "{}")
      #expect(response.status == 412, "\(condition)")
    }
    #expect(try server.client.send("GET", "/v1/objects/Account/77").status == 404)
  }

  @Test(
    "If-Match of a GET is 412 where another version is there, whatever If-None-Match says",
    arguments: ["", "/balance", "/balance,owner.lastName", "?keys=balance"])
  func readingOneVersion(part: String) throws {
    let target = path + part
    let tag = try tag(target)
    let cursor = "\"\(server.epoch)-\(try server.revision)\""
    func status(_ match: String, _ others: [String: String] = [:]) throws -> Int {
      try server.client.send("GET", target, others.merging(["If-Match": match]) { $1 }).status
    }
    for match in [tag, "*", "\"x-1\", \(tag)", cursor] { #expect(try status(match) == 200, "\(match)") }
    #expect(try status(tag, ["If-None-Match": tag]) == 304)
    #expect(try status("tag") == 400)
    for match in ["W/\(tag)", "\"x-1\"", "\"\(server.epoch)-999999\""] {
      let response = try server.client.send("GET", target, ["If-Match": match, "If-None-Match": tag])
      #expect(response.status == 412 && response.problem == "stale-revision", "\(match)")
      #expect(response["ETag"] == tag)
    }
    try server.set("Account/1/balance", "7")
    #expect(try status(tag) == 412)
    #expect(try status(cursor) == 412)
    #expect(try server.client.send("HEAD", target, ["If-Match": tag]).status == 412)
  }

  @Test("PUT with If-None-Match: * only creates")
  func onlyCreate() throws {
    let first = try server.client.send("PUT", "/v1/objects/Note/7", ["If-None-Match": "*"], body: "{}")
    #expect(first.status == 201)
    let second = try server.client.send("PUT", "/v1/objects/Note/7", ["If-None-Match": "*"], body: #"{"text":"x"}"#)
    #expect(second.status == 412)
    #expect(second["ETag"] == first["ETag"])
    #expect(try server.client.json("/v1/objects/Note/7")["text"].isNull)
  }

  @Test("A tag without quotation marks is malformed-query")
  func unquoted() throws {
    let response = try server.client.send("PUT", path + "/balance", ["If-Match": "abc-1"], body: "1")
    #expect(response.status == 400)
    #expect(response.problem == "malformed-query")
  }

  @Test("An operation that requires what has changed fails the whole transaction with its index")
  func require() throws {
    let revision = try #require(server.client.json(path)["@revision"].whole)
    try server.commit(
      #"{"op":"require","object":"Account/1","revision":\#(revision)}"#,
      #"{"op":"set","object":"Account/1","keyPath":"balance","value":1}"#)
    let stale = try server.client.send(
      "POST", "/v1/transactions",
      body: """
        {"operations":[{"op":"set","object":"Account/2","keyPath":"balance","value":1},
        {"op":"require","object":"Account/1","revision":\(revision)}]}
        """)
    #expect(stale.status == 412)
    #expect(stale.problem == "stale-revision")
    #expect(stale.json["operation"].whole == 1)
    #expect(try server.client.json("/v1/objects/Account/2/balance").double == 40)
  }

  @Test("A writer's name comes back in the events that it causes, and in no other")
  func writer() throws {
    let stream = try server.subscribed("Account/1/balance")
    try server.set("Account/1/balance", "1", ["Keyway-Writer": "me"])
    try server.set("Account/1/balance", "2")
    let own = try stream.next()
    #expect(own.data?.hasPrefix("{\"revision\":\(try server.revision - 1),\"writer\":\"me\",\"changes\":[") == true)
    #expect(try stream.next().json.has("writer") == false)
    let wrong = try server.client.send("PUT", path + "/balance", ["Keyway-Writer": "a b"], body: "1")
    #expect(wrong.problem == "malformed-query")
  }
}
