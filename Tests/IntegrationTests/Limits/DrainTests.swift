import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("SIGTERM")
struct DrainTests {
  @Test("Under 1,000 open streams each gets bye with shutdown, and the program ends with 0 within ten seconds")
  func manyStreams() throws {
    let server = try ServerProcess()
    let streams = try (0..<1000).map { index in
      try index.isMultiple(of: 10)
        ? server.client.stream("/v1/streams")
        : server.client.stream("/v1/objects/Account/1/balance?context=\(index % 9)")
    }
    for stream in streams { _ = try stream.next() }
    try server.set("Account/1/balance", "7")
    server.child.send(SIGTERM)
    var farewells = 0
    for (index, stream) in streams.enumerated() {
      let rest = try stream.rest()
      #expect(rest.map(\.name) == (index.isMultiple(of: 10) ? ["bye"] : ["change", "bye"]))
      #expect(rest.last?.text == "event: bye\ndata: {\"reason\":\"shutdown\"}")
      if stream.isComplete { farewells += 1 }
    }
    #expect(farewells == 1000)
    #expect(try server.child.exitStatus() == 0)
    #expect(throws: LoopbackError.self) { try WireSocket(port: server.port) }
  }

  @Test(
    "While a stalled stream is waited for, readyz and writes are 503 draining with Retry-After, and healthz is alive")
  func draining() throws {
    let server = try ServerProcess(settings: ["streams.pendingBytes": "33554432"])
    let stalled = try server.client.stream("/v1/objects/Note/1/text?options=new", receiveBufferBytes: 4096)
    let text = "\"" + String(repeating: "x", count: 90_000) + "\""
    for _ in 0..<100 { try server.set("Note/1/text", text) }
    #expect(try server.status["pendingBytes"].whole ?? 0 > 0)
    #expect(try server.client.send("GET", "/readyz").status == 200)
    server.child.send(SIGTERM)
    let isDraining = Deadline().awaits { (try? server.client.send("GET", "/readyz"))?.status == 503 }
    #expect(isDraining)
    let ready = try server.client.send("GET", "/readyz")
    #expect(ready.problem == "draining")
    #expect(ready["Retry-After"] != nil)
    let write = try server.client.send("PUT", "/v1/objects/Account/1/balance", body: "1")
    #expect(write.status == 503)
    #expect(write.problem == "draining")
    #expect(try server.client.send("GET", "/healthz").status == 200)
    #expect(try server.client.json("/v1/status")["draining"] == .bool(true))
    #expect(try server.child.exitStatus() == 0)
    withExtendedLifetime(stalled) {}
  }

  @Test("A stop that is announced is said by readyz alone, while everything else goes on until it begins")
  func notice() throws {
    let server = try ServerProcess(settings: ["drain.noticeSeconds": "4"])
    let stream = try server.client.stream("/v1/objects/Account/1/balance?options=new")
    server.child.send(SIGTERM)
    #expect(Deadline().awaits { (try? server.client.send("GET", "/readyz"))?.status == 503 })
    #expect(try server.client.send("GET", "/readyz").problem == "draining")
    #expect(try server.client.json("/v1/status")["draining"] == .bool(true))
    try server.set("Account/1/balance", "7")
    #expect(try stream.next().changes[0]["new"].double == 7)
    let late = try server.client.stream("/v1/objects/Account/1/balance")
    #expect(try late.next().name == "change")
    for stream in [stream, late] {
      #expect(try stream.rest().last?.text == "event: bye\ndata: {\"reason\":\"shutdown\"}")
    }
    #expect(try server.child.exitStatus() == 0)
  }

  @Test("SIGINT ends it as SIGTERM does, also without any client")
  func interrupt() throws {
    let server = try ServerProcess()
    server.child.send(SIGINT)
    #expect(try server.child.exitStatus() == 0)
  }
}
