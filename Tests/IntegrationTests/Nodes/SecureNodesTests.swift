import Foundation
import KeyValueModel
import TestKit
import Testing

/// Nodes that reach one another through a proxy that terminates TLS.
@Suite("Nodes behind TLS", .timeLimit(.minutes(60))) struct SecureNodesTests {
  private static let cells = #"{"cells":{"one":{"object":"Account/1","keyPaths":["balance"],"options":["old","new"]}}}"#
  private static let balance = "/v1/objects/Account/1/balance"

  /// A leader behind a proxy whose certificate a test's authority has signed, and a follower of the proxy's address.
  private struct Pair {
    let directory: ScratchDirectory
    let certificates: LoopbackCertificates
    let proxy: FrontProxy
    let leader: NodeProcess
    let follower: NodeProcess

    init(_ program: FrontProxy.Program) throws {
      directory = try ScratchDirectory()
      certificates = try LoopbackCertificates()
      leader = try NodeProcess("a", in: directory)
      proxy = try FrontProxy(program, upstream: .port(leader.port), name: "localhost", certificates: certificates)
      try proxy.start()
      follower = try NodeProcess(
        "b", in: directory, following: "https://localhost:\(proxy.port)",
        settings: ["nodes.caFile": certificates.authority, "nodes.staleSeconds": "3", "nodes.waitSeconds": "3"])
    }

    /// Waits until a write on the leader is read at the follower.
    func awaitFollowing(_ value: Int) throws {
      let written = try leader.client.must("PUT", SecureNodesTests.balance, body: "\(value)")
      let cursor = try #require(written["Keyway-Cursor"])
      #expect(
        Deadline().awaits {
          let read = try? follower.client.send("GET", SecureNodesTests.balance, ["Keyway-Cursor": cursor])
          return read?.status == 200 && read?.text == "\(value)\n"
        })
    }
  }

  @Test(
    "A follower follows an https leader, forwards writes and passes on streams; a client that leaves ends its stream",
    arguments: FrontProxy.Program.allCases)
  func following(program: FrontProxy.Program) throws {
    let pair = try Pair(program)
    #expect(pair.follower.awaitReady())
    try pair.awaitFollowing(1)
    let text = String(repeating: "x", count: 90_000)
    let notes = (0..<8).map { #"{"op":"create","object":"Note/n\#($0)","value":{"text":"\#(text)"}}"# }
    let written = try pair.follower.client.send(
      "POST", "/v1/transactions", body: #"{"operations":[\#(notes.joined(separator: ","))]}"#)
    #expect(written.status == 200, "\(written.text.prefix(200))")
    #expect(try pair.leader.client.send("GET", "/v1/objects/Note/n7/text").text == "\"\(text)\"\n")
    let made = try pair.leader.client.stream(
      "/v1/streams", ["Content-Type": "application/json"], method: "POST", body: Self.cells)
    let url = try #require(try made.next().json["url"].text)
    let cursor = try #require(pair.leader.client.send("GET", url)["Keyway-Cursor"])
    made.socket.close()
    let passed = try pair.follower.client.stream(url, ["Last-Event-ID": cursor])
    #expect(try passed.next().name == "open")
    for value in 2..<40 {
      let id = try #require(pair.follower.client.must("PUT", Self.balance, body: "\(value)")["Keyway-Cursor"])
      #expect(try passed.events { $0.id == id }.last?.text.contains("\"new\":\(value)") == true)
    }
    #expect(try pair.leader.status["streams"].whole == 1)
    passed.socket.close()
    #expect(try Deadline().awaits { try pair.leader.status["streams"].whole == 0 })
    try pair.follower.stop()
    try pair.leader.stop()
  }

  @Test("While the proxy is away the follower serves what it has, and refuses writes; it goes on by itself")
  func outage() throws {
    let pair = try Pair(.nginx)
    #expect(pair.follower.awaitReady())
    try pair.proxy.stop()
    let refused = try pair.follower.client.send("PUT", Self.balance, body: "7")
    #expect(refused.status == 503 && refused.problem == "leader-unreachable", "\(refused.text)")
    #expect(try pair.follower.client.send("GET", Self.balance).status == 200)
    try pair.proxy.start()
    try pair.awaitFollowing(8)
    #expect(pair.follower.awaitReady())
  }

  @Test("A leader whose certificate another authority signed is not followed, and gets no writes")
  func untrusted() throws {
    let pair = try Pair(.nginx)
    #expect(pair.follower.awaitReady())
    try pair.follower.stop()
    let others = try LoopbackCertificates()
    for file in [others.authority, "none"] {
      try pair.follower.start(["nodes.caFile": file])
      #expect(pair.follower.awaitReady(false))
      let silence = try #require(pair.follower.status["silence"].text)
      #expect(silence.contains("certificate"), "\(silence)")
      let before = try pair.leader.revision
      let refused = try pair.follower.client.send("PUT", Self.balance, body: "7")
      #expect(refused.status == 503 && refused.problem == "leader-unreachable")
      #expect(try pair.leader.revision == before)
      try pair.follower.stop()
    }
    try pair.follower.start(["nodes.caFile": pair.certificates.authority])
    try pair.awaitFollowing(9)
  }

  @Test("A start with a file that has no certificates is refused, with its name")
  func files() throws {
    let directory = try ScratchDirectory()
    for file in [directory.file("missing"), try directory.write("nothing", to: "empty")] {
      let result = try ChildProcess.keyway(
        "serve", "--port", "0", "--store", "memory", "--follow", "https://localhost:1", "--set", "nodes.caFile=\(file)")
      #expect(result.status != 0 && result.errors.contains("nodes.caFile: '\(file)'"), "\(result.errors)")
    }
  }
}
