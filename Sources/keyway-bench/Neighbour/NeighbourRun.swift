import Foundation
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
    audience.expectNumbers(above: MonotonicClock.now())
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
        let message = WireRequest.message(MonotonicClock.now(), sizeBytes: Self.messageBytes)
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
