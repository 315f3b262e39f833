import Foundation
import Support
import TestKit

/// One attack on a server of its own: a calm phase, then the attack, then a check of what the others have received.
struct NeighbourRun: ~Copyable {
  /// The time limit for listeners to catch up after the attack, in seconds.
  private static let catchUpSeconds = 30.0
  private static let messageBytes = 100

  private let options: BenchNeighbourCommand
  private let server: NeighbourServer
  private let folder: ScratchDirectory
  /// Starts a server on the store of the attacked one, with the same settings.
  private let startAgain: () throws -> NeighbourServer
  private let address: SocketAddress
  private let epoch: String
  private var audience: Audience
  private var largestResidentBytes = 0

  /// Starts a server, and fills its store.
  init(_ options: BenchNeighbourCommand) throws {
    let folder = try ScratchDirectory(in: options.folder)
    let startAgain = {
      try NeighbourServer(
        program: options.program ?? KeywayServer.keyway, folder: folder, settings: options.set,
        addressSpaceBytes: options.addressSpaceBytes, descriptors: options.descriptors)
    }
    let server = try startAgain()
    let world = NeighbourWorld(employees: options.objects, notes: options.notes)
    let address = SocketAddress(port: server.port)
    let connection = try WireConnection(address, timeoutSeconds: 60)
    try world.fill(connection)
    let epoch = try connection.must(WireRequest("GET", "/v1/status")).json["epoch"].text ?? ""
    let notes = options.notes
    // Set after everything else that can throw, since an error must not leave a noncopyable value partially
    // initialized.
    audience = try Audience(
      address, (0..<options.listeners).map { Audience.Seat.observing(NeighbourWorld.path(note: $0 % notes)) })
    (self.options, self.server, self.folder, self.address, self.epoch) = (options, server, folder, address, epoch)
    self.startAgain = startAgain
  }

  /// Runs the attack, and returns its effects on the others; `seed` is the seed of the neighbour.
  mutating func run(_ attack: any Attack, seed: UInt64) throws -> NeighbourReport.Row {
    var row = NeighbourReport.Row(attack: attack.name, summary: attack.summary)
    row.listeners = options.listeners
    try audience.connect()
    audience.expectNumbers(above: SystemClock.now())
    let (readers, writers, probe) = (readers(), writers(), HealthProbe(address))
    readers.start()
    writers.start()
    // A warm-up phase, since first-time operations take longer.
    _ = try phase(2, readers, writers, probe)
    row.calm = try phase(options.calm, readers, writers, probe)
    let neighbour = try neighbour(attack, seed: seed)
    row.attacked = try phase(options.seconds, readers, writers, probe)
    row.neighbour = try Self.tally(of: neighbour)
    readers.stop()
    writers.stop()
    probe.stop()
    row.ending = server.ending
    if row.ending == nil {
      do { row.wrongListeners = try wrongListeners() } catch {
        row.wrongListeners = options.listeners
        row.ending = server.ending ?? "it runs, but does not answer: \(error)"
      }
    }
    row.closedListeners = audience.closedCount
    row.largestResidentBytes = largestResidentBytes
    server.kill()
    if row.ending == nil { row.restartFailure = restartFailure() }
    return row
  }

  /// The reason why a server does not start again on the store, with the same settings; nil if it does.
  private func restartFailure() -> String? {
    do {
      try startAgain().kill()
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Starts the neighbour, which attacks for the duration of the phase.
  private func neighbour(_ attack: any Attack, seed: UInt64) throws -> ChildProcess {
    let nice = options.nice.map { ["--nice", "\($0)"] } ?? []
    return try ChildProcess(
      KeywayServer.thisProgram,
      [
        "attack", "--port", "\(server.port)", "--epoch", epoch, "--attack", attack.name, "--seconds",
        "\(options.seconds)", "--seed", "\(seed)", "--threads", "\(options.neighbours)", "--held", "\(options.held)",
      ] + nice, name: "keyway-bench attack")
  }

  private static func tally(of neighbour: ChildProcess) throws -> NeighbourTally {
    guard try neighbour.exitStatus(within: catchUpSeconds) == 0, let tally = try? NeighbourTally(json: neighbour.output)
    else { throw LoopbackError("the neighbour did not attack: \(neighbour.errors)") }
    return tally
  }

  private func readers() -> BystanderClients {
    let notes = options.notes
    return BystanderClients(
      .init(address: address, connections: options.readers, threads: 4, rate: options.rate) { thread, turn in
        WireRequest("GET", NeighbourWorld.path(note: (thread + turn * 7) % notes))
      })
  }

  private func writers() -> BystanderClients {
    let (notes, threads) = (options.notes, 4)
    return BystanderClients(
      .init(address: address, connections: options.writers, threads: threads, rate: options.rate) { thread, turn in
        // Each thread has notes of its own, so that the numbers of a note only increase.
        let own = max(1, notes / threads)
        let message = WireRequest.message(SystemClock.now(), sizeBytes: Self.messageBytes)
        return .setting(NeighbourWorld.path(note: thread * own + turn % own), message)
      })
  }

  private mutating func phase(
    _ seconds: Int, _ readers: BystanderClients, _ writers: BystanderClients, _ probe: HealthProbe
  ) throws -> NeighbourReport.Phase {
    _ = (readers.takeOutcome(), writers.takeOutcome(), probe.takeLongestGapMilliseconds())
    let deadline = Deadline(seconds: Double(seconds))
    while !deadline.hasPassed, server.ending == nil {
      try audience.pump(seconds: 0.1)
      if let figures = try? ProcessFigures(pid: server.pid) {
        largestResidentBytes = max(largestResidentBytes, figures.residentBytes)
      }
    }
    return NeighbourReport.Phase(
      reads: readers.takeOutcome(), writes: writers.takeOutcome(),
      longestHealthGap: probe.takeLongestGapMilliseconds())
  }

  /// Returns the number of open streams that do not come to show the same value as GET.
  private mutating func wrongListeners() throws -> Int {
    let connection = try WireConnection(address, timeoutSeconds: Self.catchUpSeconds)
    let deadline = Deadline(seconds: Self.catchUpSeconds)
    while true {
      // Read again each time: a write that its client has given up on may still be under way.
      let present = try (0..<options.notes).map { note in
        let text = try connection.must(WireRequest("GET", NeighbourWorld.path(note: note))).text
        return text.firstMatch(of: /@@([0-9]+)@/).flatMap { UInt64($0.1) } ?? 0
      }
      try audience.pump(seconds: Audience.settleSeconds)
      let wrong = audience.subscribers.indices.filter { index in
        let subscriber = audience.subscribers[index]
        let isPresent = subscriber.last == present[index % options.notes]
        return !isPresent || subscriber.doubled > 0 || subscriber.outOfOrder > 0
      }
      let count = max(0, wrong.count - audience.closedCount)
      if count == 0 || deadline.hasPassed { return count }
    }
  }
}

/// The attacked server: a process with limits on its address space and its descriptors.
final class NeighbourServer {
  /// The port of the server.
  fileprivate let port: UInt16
  private let process: ChildProcess
  /// The time that a start may take, with whatever the attack has left, in seconds.
  private static let startSeconds = 120.0

  /// Starts a program on an empty store in a folder, and waits until it serves. `addressSpaceBytes` is the limit that
  /// `ulimit -v` sets; nil for none.
  init(
    program: String, folder: ScratchDirectory, settings: [String], addressSpaceBytes: Int?, descriptors: Int
  ) throws {
    port = try LoopbackPort.free()
    let schema = try folder.write(NeighbourWorld.schema, to: "schema.yaml")
    let space = addressSpaceBytes.map { "\($0 / 1_024)" } ?? "unlimited"
    process = try ChildProcess(
      "/bin/sh",
      [
        "-c", #"ulimit -v "$0" && ulimit -n "$1" && shift && exec "$@""#, space, "\(descriptors)", program, "serve",
        "--port", "\(port)", "--schema", schema, "--store", folder.file("store"), "--set", "seed=none",
      ] + settings.flatMap { ["--set", $0] }, name: "keyway serve")
    try process.awaitReady(seconds: Self.startSeconds) {
      try WireConnection(SocketAddress(port: port), timeoutSeconds: 5).must(WireRequest("GET", "/readyz"))
    }
  }

  /// The id of its process.
  fileprivate var pid: Int { Int(process.pid) }

  /// A description of how it ended, with the last line of its log; nil while it runs.
  fileprivate var ending: String? {
    guard !process.isRunning, let status = try? process.exitStatus(within: 1) else { return nil }
    let last = process.errors.split(separator: "\n").last { !$0.isEmpty } ?? ""
    return "status \(status): \(last.prefix(200))"
  }

  /// Kills it, and waits until it has ended: only its store is still needed.
  fileprivate func kill() {
    process.send(SIGKILL)
    _ = try? process.exitStatus(within: 20)
  }

  /// Returns the value of `memory.bytes` of a program with these settings; nil if it is not set.
  static func memoryBytes(program: String, settings: [String]) throws -> Int? {
    let printing = try ChildProcess(
      program, ["serve", "--print-config"] + settings.flatMap { ["--set", $0] }, name: "keyway serve")
    _ = try printing.exitStatus(within: 30)
    var isInside = false
    for line in printing.output.split(separator: "\n") {
      if !line.hasPrefix(" ") { isInside = line.hasPrefix("memory:") }
      guard isInside, let match = line.firstMatch(of: /^\s+bytes: ([0-9]+)/) else { continue }
      // 0 means that the limit depends on the machine, as the server sees it.
      return Int(match.1).flatMap { $0 > 0 ? $0 : nil }
    }
    return nil
  }
}

/// The objects of the benchmark: those that the others use, and those that make attacks expensive.
struct NeighbourWorld {
  /// The schema of the server.
  fileprivate static let schema = """
    entities:
      Note:
        keys:
          text: { type: string }
      Big:
        keys:
          text: { type: string }
          data: { type: json }
      Link:
        keys:
          name: { type: string }
          big: { toOne: Big }
      Employee:
        keys:
          lastName: { type: string }
          salary: { type: number, default: 0 }
          note: { type: string }
          department: { toOne: Department, inverse: employees }
      Department:
        keys:
          name: { type: string }
          employees: { toMany: Employee, ordered: true, inverse: department }
          head: { toOne: Employee }
          totalSalary: { type: number, computed: "employees.@sum.salary" }

    """

  /// The number of objects created in one transaction.
  private static let batch = 4_000
  /// The length of the longest text, in characters: a little less than the maximum body of a request.
  static let longText = 1_000_000

  /// The number of employees of the large department.
  let employees: Int
  /// The number of notes that the others write and observe.
  let notes: Int

  /// Returns the path of the text of a note.
  static func path(note: Int) -> String { "/v1/objects/Note/n\(note)/text" }

  /// Creates all objects.
  fileprivate func fill(_ connection: WireConnection) throws {
    for note in 0..<notes { try connection.must(.setting("/v1/objects/Note/n\(note)", #"{"text":""}"#)) }
    let long = String(repeating: "x", count: Self.longText)
    try connection.must(.setting("/v1/objects/Big/1", #"{"text":"\#(long)"}"#))
    try connection.must(
      .setting("/v1/objects/Big/2", #"{"data":{"a":"\#(long.dropLast(Self.longText / 10))","b":[]}}"#))
    let zeros = String(repeating: "0,", count: 490_000).dropLast()
    try connection.must(.setting("/v1/objects/Big/3", "{\"data\":[\(zeros)]}"))
    for department in 1...2 { try connection.must(.setting("/v1/objects/Department/\(department)", "{}")) }
    try create(1_000, connection) { #""object":"Link/\#($0)","value":{"name":"\#($0)","big":"Big/1"}"# }
    try create(employees, connection) {
      #""object":"Employee/\#($0)","value":{"lastName":"L\#($0 % 97)","salary":\#($0),"department":"Department/1"}"#
    }
    try create(180, connection) {
      #""object":"Employee/s\#($0)","value":{"lastName":"S","salary":1,"department":"Department/2"}"#
    }
    try connection.must(.setting("/v1/objects/Employee/s0/note", "\"\(long)\""))
    try connection.must(.setting("/v1/objects/Department/2/head", #""Employee/s0""#))
  }

  private func create(_ count: Int, _ connection: WireConnection, _ members: (Int) -> String) throws {
    for first in stride(from: 0, to: count, by: Self.batch) {
      let operations = (first..<min(first + Self.batch, count)).map { "{\"op\":\"create\",\(members($0))}" }
      try connection.must(.transaction(operations))
    }
  }
}
