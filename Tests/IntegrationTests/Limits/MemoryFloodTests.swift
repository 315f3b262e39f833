import Foundation
import Glibc
import KeyValueModel
import TestKit
import Testing

/// The running program, and one address that makes it use memory while another is served.
@Suite("A client that makes the server hold memory")
struct MemoryFloodTests {
  private static let share = 24 << 20
  private static let processBytes = 512 << 20

  private static func server(addressSpaceKiB: Int? = nil) throws -> ServerProcess {
    try ServerProcess(
      settings: ["memory.bytes": "\(processBytes)", "memory.clientBytes": "\(share)", "request.seconds": "60"],
      addressSpaceKiB: addressSpaceKiB)
  }

  /// Returns the status of a request that curl sends from another address of this machine.
  private static func status(_ server: ServerProcess, _ target: String, _ arguments: String...) throws -> String {
    let curl = try ChildProcess.start(
      "/usr/bin/curl",
      ["-s", "-o", "/dev/null", "-w", "%{http_code}", "--interface", "127.0.0.2"] + arguments + [server.url + target])
    _ = try curl.exitStatus()
    return curl.output
  }

  private static func residentBytes(_ server: ServerProcess) throws -> Int {
    let text = try String(contentsOfFile: "/proc/\(server.child.pid)/statm", encoding: .utf8)
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return try #require(pages) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  private static func held(_ server: ServerProcess, _ use: String) throws -> Int {
    try server.status["memory"][use].whole ?? -1
  }

  @Test("Bodies that are announced and never finished are refused at its share, and another address writes")
  func unfinishedBodies() throws {
    let server = try Self.server()
    let head =
      "PUT /v1/objects/Note/1/text HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"
      + "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    var held: [WireSocket] = []
    var refusals = 0
    for _ in 0..<40 {
      let socket = try WireSocket(port: server.port)
      try socket.send(head)
      if held.count < 25 {
        try socket.send(String(repeating: "a", count: 400_000))
        held.append(socket)
        #expect(try Deadline().awaits { try Self.held(server, "requestBodies") == held.count * 1_000_000 })
      } else {
        let response = try WireReader(socket).response(hasBody: true, before: Deadline())
        #expect(response.status == 503)
        #expect(response["Retry-After"] != nil)
        refusals += 1
      }
    }
    #expect(refusals == 15)
    let body = "\"\(String(repeating: "b", count: 90_000))\""
    let folder = try ScratchDirectory()
    let file = folder.file("body")
    try Data(body.utf8).write(to: URL(fileURLWithPath: file))
    #expect(
      try Self.status(
        server, "/v1/objects/Note/1/text", "-X", "PUT", "-H", "Content-Type: application/json", "--data-binary",
        "@" + file) == "200")
    withExtendedLifetime(folder) {}
    for socket in held { socket.close() }
    #expect(try Deadline().awaits { try Self.held(server, "bytes") == 0 })
  }

  @Test(
    "Answers that are never read are refused at its share, another address reads, and the memory comes back",
    arguments: [nil, 4 << 20])
  func unreadAnswers(addressSpaceKiB: Int?) throws {
    let server = try Self.server(addressSpaceKiB: addressSpaceKiB)
    let text = "\"\(String(repeating: "c", count: 95_000))\""
    for id in 1...90 { try server.client.must("PUT", "/v1/objects/Note/large\(id)", body: "{\"text\":\(text)}") }
    let before = try Self.residentBytes(server)
    let request = WireRequest("GET", "/v1/objects/Note", [:], body: nil).text(host: "127.0.0.1:\(server.port)")
    var sockets: [WireSocket] = []
    var refusals = 0
    for _ in 0..<30 {
      let socket = try WireSocket(port: server.port, receiveBufferBytes: 4096)
      try socket.send(request)
      let start = try socket.receive(before: Deadline(), atMost: 12)
      if start.elementsEqual("HTTP/1.1 503".utf8) { refusals += 1 } else { sockets.append(socket) }
      #expect(try Self.residentBytes(server) < Self.processBytes / 5 * 6)
    }
    #expect(refusals >= 25)
    #expect(!sockets.isEmpty)
    #expect(try Self.held(server, "responses") <= Self.share)
    #expect(try Self.status(server, "/v1/objects/Note/large1") == "200")
    #expect(try server.client.send("GET", "/healthz").status == 200)
    sockets = []
    #expect(try Deadline().awaits { try Self.held(server, "bytes") == 0 })
    #expect(try Deadline().awaits { try Self.residentBytes(server) < before + (64 << 20) })
  }
}
