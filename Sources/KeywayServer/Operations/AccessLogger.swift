package import HTTPServer
import Logging
import Support
import Synchronization

/// Writes the access log: a line for each request, and for each stream when it has ended.
///
/// A line names the resource by its pattern: no path, query, header or body that a client sent stands in it, but the
/// method, the request's id and, as an option, the `sub` of its identity, none of which can forge lines.
package final class AccessLogger: AccessLog {
  /// The most characters of a method that are written.
  private static let methodLength = 32

  private let level: Locked<AccessLogLevel>
  /// Whether that is any but `off`: every request asks.
  private let isOn: Atomic<Bool>
  /// True to write the `sub` of the identity that asked.
  private let namesIdentities: Bool
  private let output: LogOutput

  /// The log of that level; with `namesIdentities`, lines have the `sub` of the identity that asked.
  package init(_ level: AccessLogLevel, namesIdentities: Bool = false, output: LogOutput) {
    self.level = Locked(level)
    self.namesIdentities = namesIdentities
    isOn = Atomic(level != .off)
    self.output = output
  }

  /// Whether any record has a line.
  package var isWanted: Bool { isOn.load(ordering: .relaxed) }

  /// From now on the lines of that level are written.
  package func set(_ level: AccessLogLevel) {
    self.level.withLock {
      $0 = level
      isOn.store(level != .off, ordering: .relaxed)
    }
  }

  /// Writes the line of a record, where the level asks for it.
  package func ended(_ record: AccessRecord) {
    let level = level.withLock { $0 }
    guard level == .all || level == .errors && Self.isError(record) else { return }
    var line = LogLine(
      output.format, at: output.now(), .info, label: "keyway.access",
      message: record.streamEnd == nil ? "request" : "stream")
    line.add("method", record.method.map { String($0.prefix(Self.methodLength)) } ?? "-")
    line.add("route", record.route ?? "-")
    if let status = record.status { line.add("status", status) } else { line.add("status", "-") }
    if let reason = record.reason { line.add("reason", reason) }
    if let end = record.streamEnd { line.add("end", end.rawValue) }
    line.add("bytes", record.byteCount)
    line.add("milliseconds", nanoseconds: record.nanoseconds)
    line.add("client", "\(record.client)")
    if namesIdentities, let subject = record.subject { line.add("sub", subject) }
    line.add("requestId", record.id?.text ?? "-")
    output.write(line.ended())
  }

  private static func isError(_ record: AccessRecord) -> Bool {
    switch record.streamEnd {
    case .overflow, .stalled: true
    case .clientGone, .ended, .lifetime, .shutdown: false
    case nil: record.status.map { $0 >= 400 } ?? true
    }
  }
}

/// Which requests the access log tells of.
package enum AccessLogLevel: String, CaseIterable, Sendable {
  /// None.
  case off
  /// Those that were answered with a status from 400 on, or not at all, and streams whose clients were too slow.
  case errors
  /// All.
  case all
}
