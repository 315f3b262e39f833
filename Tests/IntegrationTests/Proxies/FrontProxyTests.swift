import Foundation
import KeyValueModel
import TestKit
import Testing

/// nginx and Caddy in front of the program, with the files of `Config/proxy` and with minimal ones.
@Suite("Behind a proxy with TLS and HTTP/2", .serialized)
struct FrontProxyTests {
  private let folder: ScratchDirectory
  private let port: UInt16

  init() throws {
    folder = try ScratchDirectory()
    port = try LoopbackPort.free()
  }

  /// Starts a server on the port, with the same store each time.
  private func server(names: [String] = [FrontProxy.name]) throws -> ServerProcess {
    let list = names.map { "\"\($0)\"" }.joined(separator: ", ")
    let file = try folder.write("names: [\(list)]\n", to: "keyway.yaml")
    return try ServerProcess("--config", file, "--port", "\(port)", "--store", folder.file("store"))
  }

  @Test("The program takes its file", arguments: FrontProxy.Program.allCases)
  func validity(program: FrontProxy.Program) throws {
    #expect(try FrontProxy(program, upstream: .port(port)).mistakes() == nil)
    let text = try program.configuration()
    // A mistake in the file would be detected.
    let broken = text.replacing("proxy", with: "prxy")
    #expect(try FrontProxy(program, upstream: .port(port), text: broken).mistakes() != nil)
  }

  @Test("Each change arrives once, and a cut stream goes on", arguments: FrontProxy.Program.allCases)
  func resumption(program: FrontProxy.Program) throws {
    var server = try server()
    let proxy = try FrontProxy(program, upstream: .port(port))
    try proxy.start()
    let reader = try ResumingReader("/v1/objects/Account/1/balance", through: proxy)
    #expect(try reader.values(until: 1) == ["100"])
    #expect(reader.head.hasPrefix("HTTP/2 200"), "\(reader.head)")
    for value in 1...20 {
      try server.set("Account/1/balance", "\(value)")
      // An event is not held back until the next.
      if value % 5 == 0 { #expect(try reader.values(until: value + 1).count == value + 1) }
    }
    try proxy.stop()
    for value in 21...40 { try server.set("Account/1/balance", "\(value)") }
    try proxy.start()
    #expect(try reader.values(until: 41).count == 41)
    #expect(try server.stop() == 0)
    server = try self.server()
    for value in 41...60 { try server.set("Account/1/balance", "\(value)") }
    #expect(try reader.values(until: 61) == ["100"] + (1...60).map { "\($0)" })
    #expect(reader.connections >= 3)
    #expect(!reader.events.contains { $0.field("event") == "reset" })
    try proxy.stop()
  }

  @Test(
    "A stream whose client has left ends at the server, without a heartbeat", arguments: FrontProxy.Program.allCases)
  func leaving(program: FrontProxy.Program) throws {
    let server = try ServerProcess(
      "--port", "\(port)", "--store", "memory", settings: ["names": FrontProxy.name, "heartbeat.seconds": "3600"])
    let proxy = try FrontProxy(program, upstream: .port(port))
    try proxy.start()
    let client = try proxy.curl("/v1/objects/Account/1/balance", "-H", "Accept: text/event-stream")
    #expect(Deadline().awaits { client.output.contains("data:") })
    func openStreams() -> Int? { try? server.client.json("/v1/status")["streams"].whole }
    #expect(openStreams() == 1)
    client.send(SIGKILL)
    #expect(Deadline().awaits { openStreams() == 0 })
    try proxy.stop()
  }

  @Test("The little of the page Proxies is enough too", arguments: FrontProxy.Program.allCases)
  func defaults(program: FrontProxy.Program) throws {
    let page = try String(
      contentsOfFile: PackageFolder.root + "/Sources/keyway/Documentation.docc/Proxies.md", encoding: .utf8)
    let parts = page.components(separatedBy: "<!-- \(program.rawValue) -->\n")
    let block = try #require(parts.dropFirst().first?.components(separatedBy: "```").dropFirst().first)
    let text = block.split(separator: "\n", omittingEmptySubsequences: false).dropFirst().joined(separator: "\n")
    let server = try server()
    let proxy = try FrontProxy(
      program, upstream: .port(port), text: program == .nginx ? "events {}\nhttp {\n\(text)}\n" : text)
    try proxy.start()
    let reader = try ResumingReader("/v1/objects/Account/1/balance", through: proxy)
    #expect(try reader.values(until: 1) == ["100"], "\(reader.head)")
    for value in 1...10 {
      try server.set("Account/1/balance", "\(value)")
      #expect(try reader.values(until: value + 1).count == value + 1)
    }
    #expect(reader.connections == 1)
    // Without `grace_period` Caddy waits for its streams.
    try proxy.stop(program == .caddy ? SIGKILL : SIGTERM)
  }

  @Test("A socket takes the place of the port", arguments: FrontProxy.Program.allCases)
  func socket(program: FrontProxy.Program) throws {
    let path = folder.file("keyway.sock")
    let server = try ChildProcess.start(
      PackageFolder.keyway,
      [
        "serve", "--store", "memory", "--set", "host=unix:\(path)", "--set", "names=\(FrontProxy.name)", "--set",
        "access.proxies=unix", "--set", "log.access=all",
      ])
    let proxy = try FrontProxy(program, upstream: .socket(path))
    try proxy.start()
    try server.awaitReady {
      let answer = try proxy.curl("/readyz")
      guard try answer.exitStatus() == 0, answer.errors.hasPrefix("HTTP/2 200") else { throw LoopbackError("not yet") }
    }
    let reader = try ResumingReader("/v1/objects/Account/1/balance", through: proxy)
    #expect(try reader.values(until: 1) == ["100"])
    let written = try proxy.curl("/v1/objects/Account/1/balance", "-X", "PUT", "--json", "7")
    #expect(try written.exitStatus() == 0)
    #expect(try reader.values(until: 2) == ["100", "7"])
    // The client's address is the one that the proxy names.
    #expect(Deadline().awaits { server.errors.contains("client=127.0.0.1") })
    try proxy.stop()
  }

  @Test("A name that the server does not know is 421, which says what the setting names must have")
  func unknownName() throws {
    let server = try server(names: [])
    let proxy = try FrontProxy(.caddy, upstream: .port(port))
    try proxy.start()
    let answer = try proxy.curl("/v1/objects/Account/1")
    #expect(try answer.exitStatus() == 0)
    #expect(answer.errors.hasPrefix("HTTP/2 421"))
    let detail = try Value(json: Array(answer.output.utf8))["detail"].text
    #expect(detail?.contains("the setting names must have '\(FrontProxy.name)'") == true)
    #expect(try server.client.send("GET", "/healthz").status == 200)
    try proxy.stop()
  }
}
