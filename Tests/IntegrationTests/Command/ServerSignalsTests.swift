import Foundation
import TestKit
import Testing

/// Signals to the built program before the server is known to serve.
@Suite("Signals at the start", .timeLimit(.minutes(60))) struct ServerSignalsTests {
  /// Starts a server on a port that is known in advance, with its store in memory unless `arguments` say otherwise.
  private static func start(_ arguments: String...) throws -> (child: ChildProcess, client: WireClient) {
    let port = try LoopbackPort.free()
    let child = try ChildProcess.start(PackageFolder.keyway, ["serve", "--port", "\(port)"] + arguments)
    return (child, WireClient(port: port, keepingAlive: child))
  }

  @Test("SIGHUP as soon as the server answers ends none of many starts, and is not lost")
  func hangup() throws {
    for _ in 0..<20 {
      let (child, client) = try Self.start("--store", "memory")
      let isReady = Deadline().awaits { (try? client.send("GET", "/readyz"))?.status == 200 || !child.isRunning }
      child.send(SIGHUP)
      #expect(isReady && Deadline().awaits { child.errors.contains("settings read") || !child.isRunning })
      #expect(try child.isRunning && client.send("GET", "/healthz").status == 200, "\(child.errors)")
      child.send(SIGTERM)
      #expect(try child.exitStatus() == 0)
    }
  }

  @Test("SIGTERM at any moment of a start, the recovery of a store among them, ends it with 0")
  func termination() throws {
    let directory = try ScratchDirectory()
    let store = directory.file("store")
    let (first, client) = try Self.start("--store", store)
    #expect(Deadline().awaits { (try? client.send("GET", "/readyz"))?.status == 200 })
    for round in 0..<5 {
      let operations = (0..<2_000).map { #"{"op":"create","object":"Note/r\#(round)n\#($0)","value":{}}"# }
      let body = #"{"operations":[\#(operations.joined(separator: ","))]}"#
      try client.must("POST", "/v1/transactions", body: body)
    }
    first.send(SIGTERM)
    #expect(try first.exitStatus() == 0)
    var (early, recovering) = (0, 0)
    for round in 0..<12 {
      let (child, client) = try Self.start("--store", store)
      // Alternately once the port answers, or once it serves.
      _ = Deadline().awaits {
        let status = (try? client.send("GET", "/readyz"))?.status
        return !child.isRunning || (round % 2 == 0 ? status != nil : status == 200)
      }
      if (try? client.send("GET", "/readyz"))?.status == 503 { recovering += 1 } else { early += 1 }
      child.send(SIGTERM)
      #expect(try child.exitStatus() == 0, "\(child.errors)")
    }
    print("SIGTERM: \(recovering) starts while the store was being read, \(early) after")
  }

  @Test("SIGTERM ends a follower with 0 that waits for the node that it is to follow")
  func waitingFollower() throws {
    let port = try LoopbackPort.free()
    let (child, client) = try Self.start("--store", "memory", "--follow", "http://127.0.0.1:\(port)")
    #expect(Deadline().awaits { (try? client.send("GET", "/readyz"))?.status == 503 })
    child.send(SIGHUP)
    #expect(try client.send("GET", "/healthz").status == 200)
    child.send(SIGTERM)
    #expect(try child.exitStatus() == 0, "\(child.errors)")
  }
}

@Suite("The log's reader")
struct LogPipeTests {
  @Test("A server whose log nobody reads any more goes on", arguments: ["text", "json"])
  func closedPipe(format: String) throws {
    let port = try LoopbackPort.free()
    let scratch = try ScratchDirectory()
    // The reader of the log takes one line and ends.
    let serve = "exec '\(PackageFolder.keyway)' serve --store memory --port \(port) --set log.level=debug"
    let child = try ChildProcess.start(
      "/bin/bash",
      ["-c", "exec 2> >(exec head -n 1 > '\(scratch.file("log"))'); \(serve) --set log.format=\(format)"])
    try child.awaitReady { try WireClient(port: port).must("GET", "/readyz") }
    // Each refusal is a line of the log.
    for _ in 0..<20 { #expect(try WireClient(port: port).send("GET", "/nothing").status == 404) }
    #expect(child.isRunning)
    child.send(15)
    #expect(try child.exitStatus() == 0)
  }
}
