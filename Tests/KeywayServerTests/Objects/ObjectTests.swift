import KeyValueModel
import TestKit
import Testing

@Suite("Objects")
struct ObjectTests {
  @Test("PUT creates with 201 and Location, then replaces with 200; keys left out go back to their defaults")
  func putCreatesAndReplaces() throws {
    let server = try TestServer()
    let created = try server.client.must("PUT", "/v1/objects/Account/9", body: #"{"balance":1,"opening":5}"#)
    #expect(created.status == 201)
    #expect(created["Location"] == "/v1/objects/Account/9")
    let revision = try server.revision
    #expect(created["Keyway-Cursor"] == "\(server.epoch)-\(revision)")
    #expect(created["ETag"] == "\"\(server.epoch)-\(revision)\"")
    #expect(
      created.jsonText == #"{"@ref":"Account/9","@revision":\#(revision),"balance":1,"opening":5,"visits":null,"#
        + #""isOpen":null,"owner":null,"ownerName":null}"#)
    let replaced = try server.client.must("PUT", "/v1/objects/Account/9", body: #"{"balance":2}"#)
    #expect(replaced.status == 200)
    #expect(replaced["Location"] == nil)
    #expect(replaced.json["opening"].double == 0)
  }

  @Test("POST creates under a UUID of version 7 that grows")
  func postCreates() throws {
    let server = try TestServer()
    var last = ""
    for _ in 0..<3 {
      let created = try server.client.must("POST", "/v1/objects/Note", body: #"{"text":"x"}"#)
      #expect(created.status == 201)
      let location = try #require(created["Location"])
      let reference = try #require(created.json["@ref"].text)
      #expect(location == "/v1/objects/\(reference)")
      #expect(
        reference.wholeMatch(of: /Note\/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
      #expect(reference.prefix(18) >= last.prefix(18))
      last = reference
      #expect(try server.client.json(location)["text"].text == "x")
    }
  }

  @Test("A body may name its own reference and any revision, and both are ignored; another reference is invalid")
  func referenceInBody() throws {
    let server = try TestServer()
    try server.client.must("PUT", "/v1/objects/Note/5", body: #"{"@ref":"Note/5","@revision":77,"text":"a"}"#)
    #expect(try server.client.json("/v1/objects/Note/5")["@revision"].whole == server.revision)
    let wrong = try server.client.send("PUT", "/v1/objects/Note/5", body: #"{"@ref":"Note/6"}"#)
    #expect(wrong.status == 422)
    #expect(wrong.problem == "invalid-value")
  }

  @Test("PATCH is a merge patch, also inside json keys, under both of its media types")
  func mergePatch() throws {
    let server = try TestServer()
    try server.client.must(
      "PATCH", "/v1/objects/Note/1", ["Content-Type": "application/merge-patch+json; charset=utf-8"],
      body: #"{"tags":{"a":null,"c":3}}"#)
    let note = try server.client.must("PATCH", "/v1/objects/Note/1", body: #"{"text":null}"#).json
    #expect(note["tags"].json == #"{"b":[1,2],"c":3}"#)
    #expect(note["text"].isNull)
  }

  @Test("DELETE answers 204 without a body, and the object is unknown afterwards")
  func delete() throws {
    let server = try TestServer()
    let deleted = try server.client.must("DELETE", "/v1/objects/Note/1")
    #expect(deleted.status == 204)
    #expect(deleted["Keyway-Cursor"] == "\(server.epoch)-\(try server.revision)")
    for method in ["GET", "DELETE"] {
      let response = try server.client.send(method, "/v1/objects/Note/1")
      #expect(response.status == 404)
      #expect(response.problem == "unknown-object")
    }
  }

  @Test("A key path is read as bare JSON, set with its body, and deleted to null")
  func keyPaths() throws {
    let server = try TestServer()
    let read = try server.client.must("GET", "/v1/objects/Account/1/owner.lastName")
    #expect(read.jsonText == #""Lovelace""#)
    #expect(read["ETag"] != nil)
    let set = try server.client.must("PUT", "/v1/objects/Account/1/owner.lastName", body: #""Byron""#)
    #expect(set.status == 200)
    #expect(set.jsonText == #""Byron""#)
    #expect(try server.client.json("/v1/objects/Person/1")["lastName"].text == "Byron")
    let deleted = try server.client.must("DELETE", "/v1/objects/Account/1/balance")
    #expect(deleted.status == 204)
    #expect(try server.client.send("GET", "/v1/objects/Account/1/balance").jsonText == "null")
  }

  @Test("Several key paths are one object with those paths as members, in the order asked for")
  func keyPathSet() throws {
    let server = try TestServer()
    let response = try server.client.must("GET", "/v1/objects/Account/1/owner.lastName,balance,ownerName")
    #expect(response.jsonText == #"{"owner.lastName":"Lovelace","balance":100,"ownerName":"Lovelace"}"#)
  }

  @Test("keys picks keys, expand puts the object in place of the reference and takes the ETag away")
  func keysAndExpand() throws {
    let server = try TestServer()
    let whole = try server.client.must("GET", "/v1/objects/Account/1")
    let picked = try server.client.must("GET", "/v1/objects/Account/1?keys=balance,owner")
    #expect(picked.json.names == ["@ref", "@revision", "balance", "owner"])
    #expect(picked["ETag"] == whole["ETag"])
    #expect(picked.json["owner"].text == "Person/1")
    let expanded = try server.client.must("GET", "/v1/objects/Account/1?expand=owner")
    #expect(expanded["ETag"] == nil)
    #expect(expanded["Keyway-Cursor"] != nil)
    #expect(expanded.json["owner"]["lastName"].text == "Lovelace")
    #expect(try server.client.json("/v1/objects/Account/2?expand=owner")["owner"].isNull)
    let wrong = try server.client.send("GET", "/v1/objects/Account/1?expand=balance")
    #expect(wrong.status == 400)
    let unknown = try server.client.send("GET", "/v1/objects/Account/1?keys=nope")
    #expect(unknown.problem == "undefined-key")
  }

  @Test("The delete rules: deny refuses, cascade takes along, and others' references are nullified or deny")
  func deleteRules() throws {
    let server = try TestServer()
    #expect(try server.client.send("DELETE", "/v1/objects/Account/1").problem == "delete-denied")
    try server.client.must("PUT", "/v1/objects/Note/2", body: #"{"parent":"Note/1"}"#)
    try server.client.must("DELETE", "/v1/objects/Note/2")
    #expect(try server.client.send("GET", "/v1/objects/Note/1").status == 404)
    try server.client.must("DELETE", "/v1/objects/Person/1")
    #expect(try server.client.json("/v1/objects/Account/1")["owner"].isNull)
    try server.client.must("PUT", "/v1/objects/Badge/1", body: #"{"bearer":"Person/2"}"#)
    let denied = try server.client.send("DELETE", "/v1/objects/Person/2")
    #expect(denied.status == 409)
    #expect(denied.problem == "delete-denied")
  }

  @Test("An inverse is kept from both sides, and the former partner loses the reference")
  func inverse() throws {
    let server = try TestServer()
    try server.client.must("PUT", "/v1/objects/Person/3", body: #"{"firstName":"C","lastName":"C"}"#)
    try server.set("Person/1/spouse", #""Person/2""#)
    #expect(try server.client.json("/v1/objects/Person/2")["spouse"].text == "Person/1")
    try server.set("Person/3/spouse", #""Person/2""#)
    #expect(try server.client.json("/v1/objects/Person/2")["spouse"].text == "Person/3")
    #expect(try server.client.json("/v1/objects/Person/1")["spouse"].isNull)
  }

  @Test("A subclass is itself, and stands where its parent may")
  func subclass() throws {
    let server = try TestServer()
    #expect(try server.client.send("GET", "/v1/objects/Person/Employee").status == 404)
    try server.set("Account/2/owner", #""Employee/1""#)
    #expect(try server.client.json("/v1/objects/Account/2")["ownerName"].text == "Clement")
    #expect(try server.client.send("GET", "/v1/objects/Account/2/owner.salary").problem == "undefined-key")
    let people = try server.client.json("/v1/objects/Person")["objects"].items.map { $0["@ref"].text }
    #expect(people.contains("Employee/1"))
  }

  @Test("The schema is told as JSON Schema")
  func entities() throws {
    let server = try TestServer()
    let account = try server.client.json("/v1/entities/Account")
    #expect(account["type"].text == "object")
    #expect(account["properties"]["owner"]["keyway:toOne"].text == "Person")
    #expect(account["properties"]["ownerName"]["readOnly"] == .bool(true))
    #expect(try server.client.json("/v1/entities")["$defs"]["Account"]["title"].text == "Account")
    let unknown = try server.client.send("GET", "/v1/entities/Nope")
    #expect(unknown.problem == "unknown-entity")
  }
}
