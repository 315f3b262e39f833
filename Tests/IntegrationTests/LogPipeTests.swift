import TestKit
import Testing

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
