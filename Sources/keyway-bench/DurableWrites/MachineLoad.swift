import Foundation
import Glibc
import TestKit

/// What all processes of the machine used, from /proc: what another program does to a measurement shows in it.
struct MachineLoad: Hashable, Sendable {
  /// The time that all cores were busy since the machine started, waiting for disks not counted.
  var busySeconds: Double

  /// What it is now.
  static func now() throws -> MachineLoad {
    guard let text = try? String(contentsOfFile: "/proc/stat", encoding: .utf8), let load = MachineLoad(stat: text)
    else { throw LoopbackError("/proc/stat cannot be read") }
    return load
  }

  /// The first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, …, in ticks.
  init?(stat: String, ticksPerSecond: Int = sysconf(Int32(_SC_CLK_TCK))) {
    let fields = stat.prefix { !$0.isNewline }.split(separator: " ")
    guard fields.count > 7, fields[0] == "cpu" else { return nil }
    let ticks = [1, 2, 3, 6, 7].reduce(0) { $0 + (Int(fields[$1]) ?? 0) }
    busySeconds = Double(ticks) / Double(ticksPerSecond)
  }
}
