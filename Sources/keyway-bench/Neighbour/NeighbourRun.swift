import Foundation
import Support
import TestKit

/// One attack on a server of its own: first a calm while, then the attack, then a look at what everybody has.
struct NeighbourRun: ~Copyable {
  /// How long those who listen may take to come to the present when the attack is over.
  private static let catchUpSeconds = 30.0
  private static let messageBytes = 100

  private let options: BenchNeighbourCommand
  private let server: NeighbourServer
  private let folder: ScratchDirectory
  /// Starts a server on the store of the one that was attacked, with the same settings.
  private let startAgain: () throws -> NeighbourServer
  private let address: SocketAddress
  private let epoch: String
  private var audience: Audience
  private var largestResidentBytes = 0

  /// Starts a server and fills it.
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
    // Nothing noncopyable may be half there.
    audience = try Audience(
      address, (0..<options.listeners).map { Audience.Seat.observing(NeighbourWorld.path(note: $0 % notes)) })
    (self.options, self.server, self.folder, self.address, self.epoch) = (options, server, folder, address, epoch)
    self.startAgain = startAgain
  }

  /// Runs the attack and gives what the others noticed; `seed` is that of the neighbour.
  mutating func run(_ attack: any Attack, seed: UInt64) throws -> NeighbourReport.Row {
    var row = NeighbourReport.Row(attack: attack.name, summary: attack.summary)
    row.listeners = options.listeners
    try audience.connect()
    audience.expectNumbers(above: SystemClock.now())
    let (readers, writers, probe) = (readers(), writers(), HealthProbe(address))
    readers.start()
    writers.start()
    // What is done for the first time takes longer.
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
        row.ending = server.ending ?? "not, but it answers nothing: \(error)"
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

  /// Starts the neighbour, which attacks for as long as the phase lasts.
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
    else { throw LoopbackError("the neighbour has not attacked: \(neighbour.errors)") }
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
        // Each thread has notes of its own, so that the numbers of a note only grow.
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

  /// How many streams that are still open do not come to show what GET shows.
  private mutating func wrongListeners() throws -> Int {
    let connection = try WireConnection(address, timeoutSeconds: Self.catchUpSeconds)
    let deadline = Deadline(seconds: Self.catchUpSeconds)
    while true {
      // Each time anew: a write whose client has given up may still be on its way.
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

/// The server that is attacked: a process with a bound on its address space and its descriptors.
final class NeighbourServer {
  /// Where it is.
  fileprivate let port: UInt16
  private let process: ChildProcess
  /// The time that a start may take, with whatever the attack has left, in seconds.
  private static let startSeconds = 120.0

  /// Starts a program on an empty store in a folder, and waits until it serves. `addressSpaceBytes` is what
  /// `ulimit -v` bounds; nil for no bound.
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

  /// Its process.
  fileprivate var pid: Int { Int(process.pid) }

  /// How it ended, with the last line that it logged; nil while it runs.
  fileprivate var ending: String? {
    guard !process.isRunning, let status = try? process.exitStatus(within: 1) else { return nil }
    let last = process.errors.split(separator: "\n").last { !$0.isEmpty } ?? ""
    return "status \(status): \(last.prefix(200))"
  }

  /// Ends it at once, and waits until it has ended: nothing of it is needed any more but its store.
  fileprivate func kill() {
    process.send(SIGKILL)
    _ = try? process.exitStatus(within: 20)
  }

  /// What `memory.bytes` is set to for a program with these settings; nil where it is not.
  static func memoryBytes(program: String, settings: [String]) throws -> Int? {
    let printing = try ChildProcess(
      program, ["serve", "--print-config"] + settings.flatMap { ["--set", $0] }, name: "keyway serve")
    _ = try printing.exitStatus(within: 30)
    var isInside = false
    for line in printing.output.split(separator: "\n") {
      if !line.hasPrefix(" ") { isInside = line.hasPrefix("memory:") }
      guard isInside, let match = line.firstMatch(of: /^\s+bytes: ([0-9]+)/) else { continue }
      // 0 leaves it to the machine, which this process does not know as the server does.
      return Int(match.1).flatMap { $0 > 0 ? $0 : nil }
    }
    return nil
  }
}

/// The objects of the benchmark: what the others use, and what makes attacks dear.
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

  /// How many objects a transaction makes.
  private static let batch = 4_000
  /// How many characters the longest text has: a little less than the body of a request.
  static let longText = 1_000_000

  /// How many employees the large department has.
  let employees: Int
  /// How many notes the others write and observe.
  let notes: Int

  /// The path of the text of a note.
  static func path(note: Int) -> String { "/v1/objects/Note/n\(note)/text" }

  /// Makes all objects.
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
