import Foundation
import Glibc
import TestKit

/// The memory and the CPU time of a process, from /proc.
struct ProcessFigures: Hashable, Sendable {
  /// Resident memory.
  var residentBytes: Int
  /// User and system time since the process began.
  var cpuSeconds: Double

  /// What they are now of the process that `--pid` names; nil where it names none.
  static func ifAsked(_ pid: Int?) throws -> ProcessFigures? { try pid.map { try ProcessFigures(pid: $0) } }

  /// What they are now.
  init(pid: Int) throws {
    guard let memory = try? String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8),
      let times = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
      let pages = memory.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw LoopbackError("there is no process \(pid)") }
    residentBytes = pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    // The name in parentheses may contain anything; utime and stime are the 12th and 13th fields behind it.
    let fields = times[(times.lastIndex(of: ")") ?? times.startIndex)...].split(separator: " ")
    let ticks = fields.count > 13 ? (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0) : 0
    cpuSeconds = Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
