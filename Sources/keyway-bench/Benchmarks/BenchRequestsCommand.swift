import ArgumentParser
import Foundation
import Glibc
import KeyValueModel
import TestKit

/// `keyway-bench requests`: the processor instructions and the system calls of a request, which do not depend on the
/// speed of the machine or on its other programs.
struct BenchRequestsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requests",
    abstract: "Counts the processor instructions and the system calls of a GET and of a durable PUT.",
    discussion: """
      Starts a server under valgrind, whose tool callgrind counts the instructions outside of the kernel, and then one
      whose system calls strace counts. Both must be installed, and the server must be linked statically with Swift's
      library (swift build -c release --static-swift-stdlib), since callgrind cannot run the other.

      Each load is run twice, the second time with twice as many requests, so that the difference has no part of what
      the server does anyway. The C library is told to clear memory with ordinary instructions: of the repeated one that
      it prefers, callgrind would count every byte.
      """)

  @Option(help: "The number of requests of a load.")
  var requests = 2_000

  @Option(help: ArgumentHelp("The server; by default the one beside this program.", valueName: "file"))
  var program = KeywayServer.keyway

  @Option(help: ArgumentHelp("The parent of the new directory with the data.", valueName: "directory"))
  var directory = "."

  @OptionGroup var report: ReportOptions

  func validate() throws { try ReportOptions.check([("--requests", requests, 100...1_000_000)]) }

  func run() throws {
    let scratch = try ScratchDirectory(in: directory)
    let loads = [
      RequestLoad(name: "GET of an object", connections: 64, isWrite: false),
      RequestLoad(name: "PUT of a key", connections: 64, isWrite: true),
      RequestLoad(name: "PUT of a key", connections: 1, isWrite: true),
    ]
    let instructions = try InstructionCounter(program: program, in: scratch).counts(of: loads, requests: requests)
    let calls = try CallCounter(program: program, in: scratch).counts(of: loads, requests: requests)
    try report.show(
      RequestReport(
        rows: zip(loads, zip(instructions, calls)).map { load, counts in
          RequestReport.Row(load: load, instructions: counts.0, calls: counts.1)
        }))
  }
}

/// Requests of one kind, which a number of connections send at the same time.
private struct RequestLoad {
  let name: String
  let connections: Int
  let isWrite: Bool

  private static let object = "/v1/objects/Note/1"

  /// Creates the object that the requests are for.
  static func prepare(_ address: SocketAddress) throws {
    let text = String(repeating: "x", count: 40)
    try WireConnection(address).must(.setting(object, #"{"text":"\#(text)"}"#))
  }

  /// Sends requests: all connections send one, and all responses are read before the next ones are sent.
  func run(_ count: Int, to address: SocketAddress) throws {
    let connections = try (0..<connections).map { _ in try WireConnection(address) }
    var sent = 0
    while sent < count {
      let round = connections.prefix(count - sent)
      for (index, connection) in round.enumerated() { try connection.send(request(number: sent + index)) }
      for connection in round {
        let response = try connection.response()
        guard response.isSuccess else { throw LoopbackError(.unexpectedStatus(response.status), response.text) }
      }
      sent += round.count
    }
  }

  private func request(number: Int) -> WireRequest {
    isWrite ? .setting(Self.object + "/text", "\"\(number)\"") : WireRequest("GET", Self.object)
  }
}

/// A server whose data is in a directory of its own.
private enum CountedServer {
  static let readySeconds = 60.0
  private static let schema = "entities:\n  Note:\n    keys:\n      text: { type: string }\n"

  /// Returns the arguments with which the server is started.
  static func arguments(port: UInt16, in scratch: ScratchDirectory, store: String) throws -> [String] {
    [
      "serve", "--port", "\(port)", "--schema", try scratch.write(schema, to: "schema.yaml"), "--store",
      scratch.file(store), "--set", "seed=none",
    ]
  }

  /// Waits until a server serves, and creates the object.
  static func prepare(_ server: ChildProcess, at address: SocketAddress) throws {
    try server.awaitReady(seconds: readySeconds) { try WireConnection(address).must(WireRequest("GET", "/readyz")) }
    try RequestLoad.prepare(address)
  }

  /// Runs a program to its end, and returns its output.
  static func run(_ program: String, _ arguments: [String]) throws -> String {
    guard let path = ChildProcess.find(program) else { throw LoopbackError("\(program) is not installed") }
    let process = try ChildProcess(path, arguments)
    guard try process.exitStatus(within: readySeconds) == 0 else {
      throw LoopbackError("\(program) \(arguments.joined(separator: " ")): \(process.output)")
    }
    return process.output
  }
}

/// Counts the instructions of a server with callgrind.
private struct InstructionCounter {
  let program: String
  let scratch: ScratchDirectory

  init(program: String, in scratch: ScratchDirectory) { (self.program, self.scratch) = (program, scratch) }

  /// Returns the number of instructions of one request of each load.
  func counts(of loads: [RequestLoad], requests: Int) throws -> [Int] {
    guard let valgrind = ChildProcess.find("valgrind") else { throw LoopbackError("valgrind is not installed") }
    // valgrind reads the tables of debuggers, and gives up at those of Swift.
    let stripped = scratch.file("keyway")
    _ = try CountedServer.run("strip", ["--strip-debug", "-o", stripped, program])
    let port = try LoopbackPort.free()
    let address = SocketAddress(port: port)
    let counts = scratch.file("callgrind")
    let server = try ChildProcess(
      valgrind,
      ["--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=\(counts)", stripped]
        + CountedServer.arguments(port: port, in: scratch, store: "counted"),
      environment: ProcessInfo.processInfo.environment.merging(
        ["GLIBC_TUNABLES": "glibc.cpu.x86_rep_stosb_threshold=\(1 << 30)"]) { $1 }, name: "valgrind")
    try CountedServer.prepare(server, at: address)
    func control(_ argument: String...) throws {
      _ = try CountedServer.run("callgrind_control", argument + ["\(server.pid)"])
    }
    try control("-i", "on")
    var dumps = 0
    func count(_ load: RequestLoad, _ requests: Int) throws -> Int {
      try control("-z")
      try load.run(requests, to: address)
      try control("-d")
      dumps += 1
      return try Self.total(in: "\(counts).\(dumps)")
    }
    return try loads.map { load in
      // The first requests of a load do what none after them does.
      try load.run(requests / 10, to: address)
      let single = try count(load, requests)
      return (try count(load, 2 * requests) - single) / requests
    }
  }

  /// Returns the sum of a file of callgrind.
  private static func total(in file: String) throws -> Int {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    for line in text.split(separator: "\n") where line.hasPrefix("summary: ") {
      if let total = Int(line.dropFirst(9)) { return total }
    }
    throw LoopbackError("\(file) has no sum")
  }
}

/// Counts the system calls of a server with strace.
private struct CallCounter {
  let program: String
  let scratch: ScratchDirectory

  init(program: String, in scratch: ScratchDirectory) { (self.program, self.scratch) = (program, scratch) }

  /// Returns the number of system calls of one request of each load, by the name of the call.
  func counts(of loads: [RequestLoad], requests: Int) throws -> [[String: Double]] {
    guard let strace = ChildProcess.find("strace") else { throw LoopbackError("strace is not installed") }
    let port = try LoopbackPort.free()
    let address = SocketAddress(port: port)
    let server = try ChildProcess(
      program, CountedServer.arguments(port: port, in: scratch, store: "traced"), name: "keyway serve")
    try CountedServer.prepare(server, at: address)
    func count(_ load: RequestLoad, _ requests: Int) throws -> [String: Int] {
      let file = scratch.file("calls")
      let tracer = try ChildProcess(strace, ["-c", "-f", "-p", "\(server.pid)", "-o", file], name: "strace")
      try tracer.awaitReady {
        guard tracer.errors.contains("attached") else { throw LoopbackError("strace has not attached itself yet") }
      }
      try load.run(requests, to: address)
      tracer.send(SIGINT)
      _ = try tracer.exitStatus(within: CountedServer.readySeconds)
      return try Self.table(in: file)
    }
    return try loads.map { load in
      try load.run(requests / 10, to: address)
      let single = try count(load, requests)
      let double = try count(load, 2 * requests)
      return double.reduce(into: [:]) { calls, entry in
        calls[entry.key] = Double(entry.value - (single[entry.key] ?? 0)) / Double(requests)
      }
    }
  }

  /// Returns the counts in a table of strace, by the name of the call: the last column, and the fourth.
  private static func table(in file: String) throws -> [String: Int] {
    var counts: [String: Int] = [:]
    for line in try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n") {
      let columns = line.split(separator: " ")
      guard columns.count >= 5, let count = Int(columns[3]), let name = columns.last, name != "total" else { continue }
      counts[String(name)] = count
    }
    return counts
  }
}

/// The costs of a request of each load.
private struct RequestReport: BenchmarkReport {
  struct Row {
    let load: RequestLoad
    let instructions: Int
    let calls: [String: Double]

    var allCalls: Double { calls.values.reduce(0, +) }

    /// The most frequent calls, with their number for each request.
    var frequentCalls: String {
      calls.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.filter { $0.value >= 0.05 }
        .map { "\($0.key) \(($0.value * 100).rounded() / 100)" }.joined(separator: ", ")
    }
  }

  let rows: [Row]

  var text: String {
    rows.map { row in
      "\(row.load.name), \(row.load.connections) connections: \(row.instructions) instructions, "
        + "\((row.allCalls * 100).rounded() / 100) system calls (\(row.frequentCalls))"
    }.joined(separator: "\n")
  }

  var json: Value {
    .array(
      rows.map { row in
        var calls: JSONObject = [:]
        for (name, count) in row.calls.sorted(by: { $0.key < $1.key }) { calls[name] = .rounded(count) }
        return .object([
          "load": .string(row.load.name), "connections": .count(row.load.connections),
          "instructions": .count(row.instructions), "calls": .object(calls),
        ])
      })
  }
}
