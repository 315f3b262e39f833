import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("SIGHUP") struct ReloadTests {
  private let folder: ScratchDirectory
  private let server: ServerProcess

  init() throws {
    folder = try ScratchDirectory()
    for name in ["one", "two"] {
      _ = try folder.directory(name)
      try folder.write("page \(name)", to: "\(name)/page.txt")
    }
    try FileManager.default.createSymbolicLink(atPath: folder.file("now"), withDestinationPath: folder.file("one"))
    try folder.write("public: \(folder.file("now"))\n", to: "keyway.yaml")
    server = try ServerProcess("--config", folder.file("keyway.yaml"))
  }

  /// Writes the configuration, sends the signal, and waits for a line of the log with the outcome.
  private func reload(_ configuration: String, until text: String) throws {
    try folder.write("public: \(folder.file("now"))\n\(configuration)", to: "keyway.yaml")
    let count = server.child.errors.components(separatedBy: text).count
    server.child.send(SIGHUP)
    #expect(
      Deadline().awaits { server.child.errors.components(separatedBy: text).count > count }, "\(server.child.errors)")
  }

  /// Returns true if requests are logged. Waits only for a moment if they are not expected to be.
  private func requestsAreLogged(_ isExpected: Bool) throws -> Bool {
    let id = "probe-\(UUID().uuidString.prefix(8))"
    try server.client.must("GET", "/healthz", ["X-Request-Id": id])
    // The response to a later request comes after the log line of the first.
    try server.client.must("GET", "/healthz")
    return Deadline(seconds: isExpected ? Deadline.patienceSeconds : 0.5).awaits { server.child.errors.contains(id) }
  }

  @Test("The access log begins and ends, and a client's rate is another, without a restart")
  func taken() throws {
    #expect(try !requestsAreLogged(false))
    try reload("log: { access: all }\n", until: "settings read changed=log.access")
    #expect(try requestsAreLogged(true))
    try reload("log: { level: debug }\n", until: "settings read changed=\"log.level, log.access\"")
    #expect(try !requestsAreLogged(false))
    #expect(try server.client.send("GET", "/v1/objects/Note/none").status == 404)
    #expect(Deadline().awaits { server.child.errors.contains("debug keyway: refused") })
    try reload("access: { requestsPerSecond: 1 }\n", until: "access.requestsPerSecond")
    let statuses = try (0..<20).map { _ in try server.client.send("GET", "/v1/objects/Note/1").status }
    #expect(statuses.contains(429))
    try reload("", until: "settings read")
    #expect(Deadline().awaits { (try? server.client.send("GET", "/v1/objects/Note/1"))?.status == 200 })
    #expect(try server.stop() == 0)
  }

  @Test("The public folder is opened anew, so that a link that leads elsewhere now counts")
  func publicFolder() throws {
    #expect(try server.client.must("GET", "/page.txt").text == "page one")
    try FileManager.default.removeItem(atPath: folder.file("now"))
    try FileManager.default.createSymbolicLink(atPath: folder.file("now"), withDestinationPath: folder.file("two"))
    #expect(try server.client.must("GET", "/page.txt").text == "page one")
    try reload("", until: "settings read changed=none")
    #expect(try server.client.must("GET", "/page.txt").text == "page two")
  }

  @Test("A change that needs a restart is only logged; an invalid file, or a missing folder, changes nothing")
  func left() throws {
    try reload(
      "heartbeat: { seconds: 5 }\nlog: { access: all }\n",
      until: "settings changed that need a restart settings=heartbeat.seconds")
    #expect(try server.client.stream("/v1/streams").next().json["heartbeat"].whole == 15)
    #expect(try requestsAreLogged(true))
    try reload("log: { access: off }\nlogg: 1\n", until: "settings not read; the former stay")
    #expect(server.child.errors.contains("unknown setting logg"))
    #expect(try requestsAreLogged(true))
    try FileManager.default.removeItem(atPath: folder.file("now"))
    try reload("log: { access: off }\n", until: "settings not read; the former stay")
    #expect(try requestsAreLogged(true))
    #expect(try server.client.must("GET", "/page.txt").text == "page one")
    #expect(try server.stop() == 0)
  }
}
