import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("Leases of a server that was killed") struct LeaseRestartTests {
  @Test("Leases of seconds expire by the machine's clock, those of streams soon; other objects stay")
  func killed() throws {
    let folder = try ScratchDirectory()
    func serve() throws -> ServerProcess {
      try ServerProcess("--store", folder.file("store"), settings: ["streams.resumeSeconds": "3"])
    }
    var server = try serve()
    let stream = try server.client.stream("/v1/streams")
    let name = try #require(try stream.next().json["stream"].text)
    for (id, lifetime) in [("short", "4"), ("long", "3600"), ("bound", "stream=\(name)")] {
      try server.client.must("PUT", "/v1/objects/Note/\(id)", ["Keyway-Lifetime": lifetime], body: #"{"text":"x"}"#)
    }
    try server.client.must("PUT", "/v1/objects/Note/plain", body: #"{"text":"x"}"#)
    server.child.send(SIGKILL)
    #expect(try server.child.exitStatus() != 0)
    // Its lease expires while no server runs.
    let end = Date(timeIntervalSinceNow: 4.2)
    #expect(Deadline().awaits { Date() > end })

    server = try serve()
    func exists(_ id: String) throws -> Bool { try server.client.send("GET", "/v1/objects/Note/\(id)").status == 200 }
    #expect(try Deadline().awaits { try !exists("short") })
    #expect(try Deadline().awaits { try !exists("bound") })
    #expect(try exists("plain"))
    #expect(try server.client.json("/v1/objects/Note/long")["@lifetime"].whole == 3600)
    // Ends that a killed server has published are still there after the next kill.
    let cursor = try server.cursor
    server.child.send(SIGKILL)
    #expect(try server.child.exitStatus() != 0)
    server = try serve()
    #expect(try server.cursor == cursor)
    #expect(try !exists("short") && !exists("bound") && exists("long") && exists("plain"))
    #expect(try server.stop() == 0)
  }
}
