import Glibc
import TestKit

/// The CPU time that all processes had used at a moment.
struct CPUTimes: Hashable, Sendable {
  /// How many cores were busy between two moments, and for whom.
  struct Cores: Hashable, Sendable {
    /// For the servers.
    var servers = 0.0
    /// For the load generator.
    var generator = 0.0
    /// For all other processes, the kernel's own threads too.
    var others = 0.0
  }

  private var moment: UInt64
  private var servers: Double
  private var generator: Double
  private var machine: Double

  /// What it is now.
  static func now(of peers: [RunningPeer]) throws -> CPUTimes {
    var servers = 0.0
    for pid in peers.flatMap(\.pids) { servers += try ProcessFigures(pid: pid).cpuSeconds }
    return CPUTimes(
      moment: MonotonicClock.now(), servers: servers,
      generator: try ProcessFigures(pid: Int(getpid())).cpuSeconds, machine: try MachineLoad.now().busySeconds)
  }

  /// What was used since `earlier`.
  func cores(since earlier: CPUTimes) -> Cores {
    let seconds = max(Double(moment - earlier.moment) / 1e9, 1e-9)
    var cores = Cores(
      servers: (servers - earlier.servers) / seconds, generator: (generator - earlier.generator) / seconds)
    // Each clock has ticks of 10 ms.
    cores.others = max(0, (machine - earlier.machine) / seconds - cores.servers - cores.generator)
    return cores
  }
}
