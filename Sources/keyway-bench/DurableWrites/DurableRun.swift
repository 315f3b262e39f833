import Glibc
import TestKit

/// One benchmark of durable writes: every server on one disk, all in turn, round after round.
enum DurableRun {
  /// How long each loop runs before it is measured.
  private static let warmUpSeconds = 0.3
  /// How long the disk alone is measured, in each of two ways and in each round.
  private static let diskSeconds = 0.25
  /// How long everything rests between two measurements: what one server left to be done shall not slow the next.
  private static let restMicroseconds: UInt32 = 200_000

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  static func run(_ options: BenchDurableCommand) throws -> DurableReport {
    let directory = try ScratchDirectory(in: options.directory)
    var running: [RunningPeer] = []
    defer {
      // First the servers end, then their data goes.
      running.removeAll()
      directory.remove()
    }
    var report = DurableReport(connections: options.connections, readers: options.readers, writers: options.writers)
    for kind in options.peers {
      if let peer = try RunningPeer.start(kind, options, in: directory) {
        running.append(peer)
      } else {
        report.skipped.append(kind.rawValue)
      }
    }
    for _ in 0..<options.rounds { report.rounds.append(try round(options, running, directory: directory.path)) }
    return report
  }

  private static func round(
    _ options: BenchDurableCommand, _ peers: [RunningPeer], directory: String
  ) throws -> DurableReport.Round {
    var round = DurableReport.Round()
    round.disk = try DiskProbe(directory: directory, seconds: diskSeconds)
    for connections in Set([options.connections, 1]).sorted(by: >) {
      for peer in peers {
        let measured = try measure([peer.writing(connections)], options, peers)
        round.writes[DurableReport.Subject(peer: peer.peer.kind, connections: connections)] = measured[0]
      }
    }
    guard let keyway = peers.first(where: { $0.peer.kind == .keyway }) else { return round }
    round.readsAlone = try measure([keyway.reading(options.readers)], options, peers)[0]
    let both = try measure([keyway.reading(options.readers), keyway.writing(options.writers)], options, peers)
    round.readsWhileWriting = both[0]
    round.writesWhileReading = both[1]
    return round
  }

  /// One measurement; gives the figures of each lane.
  private static func measure(
    _ lanes: [ClosedLoop.Lane], _ options: BenchDurableCommand, _ peers: [RunningPeer]
  ) throws -> [DurableReport.Load] {
    usleep(restMicroseconds)
    var loop = try ClosedLoop(lanes)
    let before = try CPUTimes.now(of: peers)
    var loads = try loop.run(warmUpSeconds: warmUpSeconds, seconds: options.seconds)
    let cores = try CPUTimes.now(of: peers).cores(since: before)
    for lane in loads.indices { loads[lane].cores = cores }
    return loads
  }
}
