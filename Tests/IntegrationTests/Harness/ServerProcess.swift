import Foundation
import KeyValueModel
import TestKit

/// `keyway serve` on a free port, as a process of its own.
final class ServerProcess {
  let child: ChildProcess
  let port: UInt16

  /// Serves the example with a store in memory, unless `arguments` say otherwise. `addressSpaceKiB` limits its address
  /// space, as `ulimit -v` does.
  init(
    _ arguments: String..., settings: [String: String] = [:], environment: [String: String] = [:],
    addressSpaceKiB: Int? = nil
  ) throws {
    let flags = settings.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
    let store = arguments.contains("--store") ? [] : ["--store", "memory"]
    let serve = ["serve", "--port", "0"] + store + arguments + flags
    let child =
      if let addressSpaceKiB {
        try ChildProcess.start(
          "/bin/sh", ["-c", "ulimit -v \(addressSpaceKiB); exec \"$0\" \"$@\"", PackageFolder.keyway] + serve,
          environment: environment)
      } else {
        try ChildProcess.start(PackageFolder.keyway, serve, environment: environment)
      }
    var found: UInt16?
    _ = Deadline().awaits {
      found = Self.port(in: child.errors)
      return found != nil || !child.isRunning
    }
    guard let found else {
      throw LoopbackError("keyway serve did not come up:\n\(child.errors)")
    }
    self.child = child
    port = found
  }

  /// Returns the port in the line with `url=http://127.0.0.1:PORT`.
  private static func port(in log: String) -> UInt16? {
    guard let match = log.firstMatch(of: /url=http:\/\/127\.0\.0\.1:([0-9]+)\s/) else { return nil }
    return UInt16(match.1)
  }

  /// A client of the server. The client and its streams retain the server.
  var client: WireClient { WireClient(port: port, keepingAlive: self) }

  var url: String { "http://127.0.0.1:\(port)" }

  var status: Value { get throws { try client.json("/v1/status") } }

  /// The cursor of the present state.
  var cursor: String {
    get throws {
      let status = try status
      return "\(status["epoch"].text ?? "")-\(status["revision"].whole ?? -1)"
    }
  }

  var revision: Int { get throws { try status["revision"].whole ?? -1 } }

  /// The number of open descriptors of the process.
  var descriptorCount: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(child.pid)/fd").count) ?? -1
  }

  /// Sets a key path to a JSON text.
  func set(_ path: String, _ json: String) throws {
    try client.must("PUT", "/v1/objects/\(path)", body: json)
  }

  /// Waits until no stream is open.
  func hasNoStreams() throws -> Bool {
    try Deadline().awaits {
      let status = try status
      return status["streams"].whole == 0 && status["observations"].whole == 0
    }
  }

  /// Sends SIGTERM, and returns the exit status.
  func stop() throws -> Int32 {
    child.send(SIGTERM)
    return try child.exitStatus()
  }
}

/// Programs started in the checkout, without the environment's settings for `keyway`.
extension ChildProcess {
  /// Starts a program; `environment` is added to that of this process.
  static func start(
    _ program: String, _ arguments: [String], environment: [String: String] = [:], folder: String = PackageFolder.root
  ) throws -> ChildProcess {
    guard FileManager.default.isExecutableFile(atPath: program) else {
      throw LoopbackError("\(program) is missing; see the test command of the README")
    }
    let variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("KEYWAY_") }
    return try ChildProcess(
      program, arguments, environment: variables.merging(environment) { _, given in given }, folder: folder)
  }

  /// Runs a program to its end.
  static func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:]
  ) throws -> (status: Int32, output: String, errors: String) {
    let child = try start(program, arguments, environment: environment)
    let status = try child.exitStatus()
    return (status, child.output, child.errors)
  }

  /// Runs `keyway` to its end.
  static func keyway(
    _ arguments: String..., environment: [String: String] = [:]
  ) throws -> (status: Int32, output: String, errors: String) {
    try run(PackageFolder.keyway, arguments, environment: environment)
  }

  /// The same for `keyway-bench`.
  static func keywayBench(_ arguments: String...) throws -> (status: Int32, output: String, errors: String) {
    try run(PackageFolder.keywayBench, arguments)
  }
}

/// The paths of the checkout and of the built programs.
enum PackageFolder {
  /// The root of the checkout.
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path

  /// The program under test, beside the running test bundle.
  static let keyway = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
    .appendingPathComponent("keyway").path

  /// The benchmark program, beside both.
  static let keywayBench = keyway + "-bench"

  /// The Python of the tests: see the README's test command.
  static let python = root + "/.build/python/bin/python"

  /// Returns the path of a script beside these tests.
  static func script(_ name: String) -> String { root + "/Tests/IntegrationTests/Scripts/" + name }

  static let schema = root + "/Config/example/schema.yaml"
  static let seed = root + "/Config/example/objects.jsonl"
  static let stocks = root + "/Config/example/stocks.csv"
  static let airports = root + "/Config/example/airports.csv"
}
