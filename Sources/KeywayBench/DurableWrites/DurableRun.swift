import Glibc

/// One benchmark of durable writes: every server on one disk, all in turn, round after round.
enum DurableRun {
  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  static func run(_ plan: DurablePlan) throws(FanoutError) -> DurableReport {
    let directory = try ScratchDirectory(in: plan.directory)
    var running: [RunningPeer] = []
    defer {
      // First the servers end, then their data goes.
      running.removeAll()
      directory.remove()
    }
    var report = DurableReport(connections: plan.connections, readers: plan.readers, writers: plan.writers)
    for kind in plan.peers {
      if let peer = try RunningPeer.start(kind, plan, in: directory) {
        running.append(peer)
      } else {
        report.skipped.append(kind.rawValue)
      }
    }
    let sites = running.map(\.site)
    for _ in 0..<plan.rounds { report.rounds.append(try round(plan, sites: sites, directory: directory.path)) }
    return report
  }

  private static func round(
    _ plan: DurablePlan, sites: [PeerSite], directory: String
  ) throws(FanoutError) -> DurableReport.Round {
    var round = DurableReport.Round()
    round.disk = try DiskProbe(directory: directory, seconds: DurablePlan.diskSeconds)
    for connections in Set([plan.connections, 1]).sorted(by: >) {
      for site in sites {
        let lane = site.writing(connections)
        let measured = try measure([lane], plan, sites: sites)
        round.writes[DurableReport.Subject(peer: site.peer.kind, connections: connections)] = measured[0]
      }
    }
    guard let keyway = sites.first(where: { $0.peer.kind == .keyway }) else { return round }
    round.readsAlone = try measure([keyway.reading(plan.readers)], plan, sites: sites)[0]
    let both = try measure([keyway.reading(plan.readers), keyway.writing(plan.writers)], plan, sites: sites)
    round.readsWhileWriting = both[0]
    round.writesWhileReading = both[1]
    return round
  }

  /// One measurement; gives the figures of each lane.
  private static func measure(
    _ lanes: [ClosedLoop.Lane], _ plan: DurablePlan, sites: [PeerSite]
  ) throws(FanoutError) -> [DurableReport.Load] {
    usleep(DurablePlan.restMicroseconds)
    var loop = try ClosedLoop(lanes)
    let before = try CPUTimes.now(sites)
    let tallies = try loop.run(warmUpSeconds: plan.warmUpSeconds, seconds: plan.seconds)
    let used = try CPUTimes.now(sites).cores(since: before)
    return tallies.map { DurableReport.Load($0, used) }
  }
}
