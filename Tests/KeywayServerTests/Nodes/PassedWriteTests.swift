import Foundation
import KeyValueModel
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

/// The responses of a node to writes that another node forwarded.
@Suite("Writes that nodes pass on") struct PassedWriteTests {
  private let server: TestServer

  init() throws { server = try TestServer { $0.cluster.followers = true } }

  private func write(_ since: String? = nil) throws -> PassedWrite {
    let status = try server.client.json("/v1/status")
    let cursor = since ?? "\(status["epoch"].text ?? "")-\(status["revision"].whole ?? 0)"
    return PassedWrite(since: try #require(Cursor(cursor)))
  }

  private func send(
    _ method: String, _ target: String, _ write: PassedWrite, _ headers: [String: String] = [:], body: String = ""
  ) throws -> WireResponse {
    let headers = headers.merging(["Keyway-Request": write.field]) { $1 }
    return try server.client.send(method, target, headers, body: body)
  }

  @Test("Any write that is sent twice is done once, and answered alike")
  func once() throws {
    let writes: [(String, String, String)] = [
      ("POST", "/v1/objects/Note", #"{"text":"once"}"#), ("PUT", "/v1/objects/Account/1/visits", "7"),
      ("PATCH", "/v1/objects/Account/1", #"{"visits":8}"#), ("DELETE", "/v1/objects/Account/1/visits", ""),
      ("POST", "/v1/transactions", #"{"operations":[{"op":"create","entity":"Note","value":{"text":"x"}}]}"#),
    ]
    for (method, target, body) in writes {
      let write = try write()
      let before = try server.revision
      let first = try send(method, target, write, body: body)
      #expect(first.isSuccess, "\(method) \(target): \(first.text)")
      try server.set("Account/2/visits", "\(before)")
      var again = write
      again.isAgain = true
      let second = try send(method, target, again, body: body)
      #expect(second.status == first.status && second.body == first.body, "\(method) \(target)")
      for name in ["Keyway-Cursor", "ETag", "Location", "Content-Type"] { #expect(second[name] == first[name]) }
      #expect(second["Idempotency-Replayed"] == nil)
      #expect(try server.revision == before + 2)
    }
  }

  @Test("With a client's own key both hold: the nodes' name, and the key at a request that was not passed on")
  func keys() throws {
    let (write, key) = (try write(), ["Idempotency-Key": "mine"])
    let body = #"{"text":"once"}"#
    let first = try send("POST", "/v1/objects/Note", write, key, body: body)
    let second = try send("POST", "/v1/objects/Note", write, key, body: body)
    let third = try server.client.send("POST", "/v1/objects/Note", key, body: body)
    #expect(first.status == 201 && second.body == first.body && third.body == first.body)
    #expect(third["Idempotency-Replayed"] == "true")
    // Another node's retry has another name, and the same key.
    let fourth = try send("POST", "/v1/objects/Note", try self.write(), key, body: body)
    #expect(fourth.body == first.body && fourth["Idempotency-Replayed"] == "true")
  }

  @Test("A refusal changes nothing and is given again; after one that was asked for again, an earlier request is 503")
  func refusals() throws {
    var write = try write()
    let target = "/v1/objects/Note/none/text"
    #expect(try send("PUT", target, write, body: "\"x\"").status == 404)
    #expect(try send("PUT", target, write, body: "\"x\"").status == 404)
    write.isAgain = true
    #expect(try send("PUT", target, write, body: "\"x\"").status == 404)
    try server.client.must("PUT", "/v1/objects/Note/none", body: #"{"text":"now"}"#)
    write.isAgain = false
    #expect(try send("PUT", target, write, body: "\"x\"").problem == "store-unavailable")
    #expect(try server.client.send("GET", target).text == "\"now\"\n")
  }

  @Test("A name that is not a node's, or of another epoch, is refused, and nothing is changed")
  func strangers() throws {
    let before = try server.revision
    let target = "/v1/objects/Account/1/visits"
    let malformed = try server.client.send("PUT", target, ["Keyway-Request": "mine"], body: "9")
    #expect(malformed.status == 400 && malformed.problem == "malformed-query")
    #expect(try send("PUT", target, write("other-1"), body: "9").problem == "store-unavailable")
    #expect(try server.revision == before)
    // Requests that do not write have no such name.
    #expect(try server.client.send("GET", target, ["Keyway-Request": "mine"]).status == 200)
  }

  @Test("Of a large object that it may be asked for again, the node tells by which commit it was done")
  func largeObjects() throws {
    let write = try write()
    let text = String(repeating: "long ", count: 20_000)
    let first = try send("PUT", "/v1/objects/Note/large", write, body: "{\"text\":\"\(text)\"}")
    #expect(first.status == 201 && first.body.count > 100_000)
    let second = try send("PUT", "/v1/objects/Note/large", write, body: "{\"text\":\"\(text)\"}")
    #expect(second.status == 204 && second["Keyway-Cursor"] == first["Keyway-Cursor"])
  }

  @Test("The answer that is kept under a name is given to the same request alone")
  func bindings() throws {
    let (write, target) = (try write(), "/v1/objects/Note/secret")
    let first = try send("PUT", target, write, body: #"{"text":"secret"}"#)
    #expect(first.status == 201)
    let before = try server.revision
    for (method, target, body) in [
      ("PUT", target, "{}"), ("PATCH", target, #"{"text":"secret"}"#), ("DELETE", target, ""),
      ("PUT", "/v1/objects/Note/other", #"{"text":"secret"}"#), ("PUT", target + "?x=1", #"{"text":"secret"}"#),
    ] {
      let other = try send(method, target, write, body: body)
      #expect(other.status == 400 && other.problem == "malformed-query", "\(method) \(target): \(other.text)")
      #expect(!other.text.contains("secret"))
    }
    #expect(try server.revision == before)
    // The same request with its whole URL as target.
    let again = try send("PUT", "http://127.0.0.1:\(server.client.port)\(target)", write, body: #"{"text":"secret"}"#)
    #expect(again.status == 201 && again.body == first.body)
  }

  @Test("With authentication, only nodes may name a write, and a response belongs to its client")
  func access() throws {
    let guarded = try GuardedServer { $0.cluster.followers = true }
    let (client, target) = (guarded.client, "/v1/objects/Note/1/text")
    let epoch = guarded.server.epoch
    let name = ["Keyway-Request": PassedWrite(since: try #require(Cursor("\(epoch)-0"))).field]
    let node = ["Keyway-Node": guarded.admin["Authorization"] ?? ""]
    func put(_ headers: [String: String]...) throws -> WireResponse {
      let all = headers.reduce(into: name) { $0.merge($1) { $1 } }
      return try client.send("PUT", target, all, body: "\"x\"")
    }
    let before = try client.must("GET", "/v1/status", guarded.admin).json["revision"].whole
    for headers in [[:], ["Keyway-Node": "Bearer x"], ["Keyway-Node": guarded.reader["Authorization"] ?? ""]] {
      let refused = try put(guarded.admin, headers)
      #expect(refused.status == 403 && refused.problem == "node-refused" && refused["Keyway-Cursor"] != nil)
    }
    #expect(try client.must("GET", "/v1/status", guarded.admin).json["revision"].whole == before)
    // The node's token does not identify the author of the write.
    #expect(try put(node).status == 401)
    #expect(try put(guarded.admin, node).status == 200)
    let other = guarded.bearer("other", roles: ["keyway-admin"])
    #expect(try put(other, node).problem == "malformed-query")
    #expect(try put(guarded.admin, node).status == 200)
  }

  @Test("A server that is on its own takes no names of writes, from nobody")
  func alone() throws {
    let alone = try TestServer()
    let write = PassedWrite(since: try #require(Cursor("\(alone.epoch)-0")))
    let refused = try alone.client.send(
      "PUT", "/v1/objects/Account/1/visits", ["Keyway-Request": write.field], body: "9")
    #expect(refused.status == 403 && refused.problem == "node-refused" && refused.text.contains("nodes.followers"))
    #expect(try alone.client.send("GET", "/v1/objects/Account/1/visits").text == "null\n")
  }
}
