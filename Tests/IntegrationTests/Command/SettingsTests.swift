import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("Settings of a running server")
struct SettingsTests {
  /// Writes a configuration file.
  private func file(_ text: String) throws -> URL {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-\(UUID().uuidString).yaml")
    try Data(text.utf8).write(to: url)
    return url
  }

  /// Returns the heartbeat that a server reports to its streams.
  private func heartbeat(_ server: ServerProcess) throws -> Int? {
    try server.client.stream("/v1/streams").next().json["heartbeat"].whole
  }

  @Test("Flags win over the environment, that over the file, and that over the default")
  func precedence() throws {
    let file = try file("heartbeat:\n  seconds: 41\n")
    defer { try? FileManager.default.removeItem(at: file) }
    let variable = ["KEYWAY_HEARTBEAT_SECONDS": "42"]
    #expect(try heartbeat(ServerProcess()) == 15)
    #expect(try heartbeat(ServerProcess("--config", file.path)) == 41)
    #expect(try heartbeat(ServerProcess("--config", file.path, environment: variable)) == 42)
    let flag = try ServerProcess(
      "--config", file.path, settings: ["heartbeat.seconds": "43"], environment: variable)
    #expect(try heartbeat(flag) == 43)
  }

  @Test("--print-config prints every setting with where it comes from, and is itself a configuration file")
  func printConfig() throws {
    let file = try file("names: [example.org]\nhistory.revisions: 77\n")
    defer { try? FileManager.default.removeItem(at: file) }
    let printed = try ChildProcess.keyway(
      "serve", "--print-config", "--config", file.path, "--port", "0",
      environment: ["KEYWAY_REQUEST_BODY_BYTES": "4096"])
    #expect(printed.status == 0)
    let lines = printed.output.split(separator: "\n").map { String($0).replacing(##/[ ]{2,}#/##, with: " #") }
    for line in [
      "port: 0 # --port", "names: [\"example.org\"] # \(file.path):1", "  revisions: 77 # \(file.path):2",
      "  bodyBytes: 4096 # KEYWAY_REQUEST_BODY_BYTES", "  seconds: 15 # default",
    ] {
      #expect(lines.contains(line), "\(printed.output)")
    }
    let copy = try self.file(printed.output)
    defer { try? FileManager.default.removeItem(at: copy) }
    let again = try ChildProcess.keyway("serve", "--print-config", "--config", copy.path)
    #expect(again.status == 0)
    let withoutComments = { (text: String) in text.replacing(##/[ ]+#.*/##, with: "") }
    #expect(withoutComments(again.output) == withoutComments(printed.output))
  }

  static let mistakes: [(text: String, error: String)] = [
    ("port: 8080\nhartbeat:\n  seconds: 5\n", ":2: unknown setting hartbeat"),
    ("heartbeat:\n  secnds: 5\n", ":2: unknown setting heartbeat.secnds; did you mean heartbeat.seconds?"),
    ("\nport: 70000\n", ":2: port is 70000, not between 0 and 65535"),
    ("port: \"many\"\n", ":1: port is \"many\", not a whole number"),
    ("port: 1\nport: 2\n", ":2:1: declared twice: port; first on line 1"),
    ("log:\n  format: xml\n", ":2: log.format is \"xml\", not one of text, json"),
    ("port: [\n", ":"),
    ("- a\n", ":1: the file must be a mapping"),
  ]

  @Test("A mistake in the file keeps the server from starting, with file, line and reason", arguments: mistakes)
  func mistake(_ text: String, _ error: String) throws {
    let file = try file(text)
    defer { try? FileManager.default.removeItem(at: file) }
    let outcome = try ChildProcess.keyway("serve", "--config", file.path, "--set", "seed=none")
    #expect(outcome.status != 0)
    #expect(outcome.errors.contains(file.path + error), "\(outcome.errors)")
  }

  @Test("A mistake in a flag or in the environment is named by the flag or the variable")
  func otherMistakes() throws {
    let flag = try ChildProcess.keyway("serve", "--port", "none")
    #expect(flag.status != 0 && flag.errors.contains("--port: port is \"none\""), "\(flag.errors)")
    let variable = try ChildProcess.keyway("serve", environment: ["KEYWAY_PORT": "-1"])
    #expect(variable.status != 0 && variable.errors.contains("KEYWAY_PORT: port is -1"), "\(variable.errors)")
    let unknown = try ChildProcess.keyway("serve", "--set", "colour=red")
    #expect(unknown.status != 0 && unknown.errors.contains("colour"), "\(unknown.errors)")
    for path in ["/proc/nowhere", "//proc/nowhere"] {
      let store = try ChildProcess.keyway("serve", "--store", path, "--port", "0")
      #expect(store.status != 0 && store.errors.hasPrefix("Error: \(path): cannot be made: "), "\(store.errors)")
    }
  }

  @Test("In a pod beside a service called keyway, the server starts and a command finds it")
  func kubernetes() throws {
    let pod = ["KEYWAY_PORT": "tcp://10.96.0.10:8080", "KEYWAY_SERVICE_HOST": "10.96.0.10"]
    let server = try ServerProcess(environment: pod)
    #expect(!server.child.errors.contains("KEYWAY_"), "\(server.child.errors)")
    let got = try ChildProcess.keyway("get", "/healthz", "--server", server.url, environment: pod)
    #expect(got.status == 0, "\(got.errors)")
  }

  @Test("--help says that a store is a directory or memory")
  func help() throws {
    let help = try ChildProcess.keyway("serve", "--help").output.replacing(/\s+/, with: " ")
    #expect(help.contains("--store <store> The directory where objects are kept (default: keyway-data), or memory."))
  }

  @Test("The most operations of a transaction are a setting")
  func operations() throws {
    let server = try ServerProcess(settings: ["transactions.operations": "2"])
    let note = #"{"op":"create","entity":"Note","value":{"text":"a"}}"#
    let full = try server.client.send("POST", "/v1/transactions", body: #"{"operations":[\#(note),\#(note)]}"#)
    #expect(full.status == 200)
    let over = try server.client.send(
      "POST", "/v1/transactions", body: #"{"operations":[\#(note),\#(note),\#(note)]}"#)
    #expect(over.status == 429)
  }

  @Test("A start on a store that has objects logs how many it read, once it has read them all")
  func recovery() throws {
    let folder = try ScratchDirectory()
    for start in 1...2 {
      let child = try ChildProcess.start(
        PackageFolder.keyway, ["serve", "--port", "0", "--store", folder.file("store"), "--set", "log.format=json"])
      #expect(Deadline().awaits { child.errors.contains("http://127.0.0.1:") })
      child.send(SIGTERM)
      #expect(try child.exitStatus() == 0)
      let entries = try child.errors.split(separator: "\n").map { try Value(json: String($0)) }
      let ends = entries.filter { $0["message"].text == "recovered" }.map { $0["progress"].text ?? "" }
      #expect(ends == (start == 1 ? [] : ["0 objects read, 1 of 1 records replayed"]), "\(child.errors)")
    }
  }

  @Test("A port that is taken is an error, no second server, and no store")
  func takenPort() throws {
    let server = try ServerProcess()
    let folder = try ScratchDirectory()
    let store = folder.file("store")
    let second = try ChildProcess.keyway("serve", "--store", store, "--port", "\(server.port)")
    #expect(!FileManager.default.fileExists(atPath: store))
    #expect(second.status == 1)
    #expect(second.errors.contains("\(server.port)"), "\(second.errors)")
    #expect(try server.client.send("GET", "/healthz").status == 200)
  }

  @Test("The log can be JSON, one object a line, and still says where the server is")
  func jsonLog() throws {
    let child = try ChildProcess.start(
      PackageFolder.keyway, ["serve", "--port", "0", "--store", "memory", "--set", "log.format=json"])
    #expect(Deadline().awaits { child.errors.contains("http://127.0.0.1:") })
    child.send(SIGTERM)
    #expect(try child.exitStatus() == 0)
    for line in child.errors.split(separator: "\n") {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      #expect(object?["message"] is String)
    }
  }
}
