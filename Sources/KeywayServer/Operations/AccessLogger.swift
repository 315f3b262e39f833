package import HTTPServer
import Logging
import Support
import Synchronization

/// Writes the access log: one line for each request, and one for each stream when it has ended.
///
/// A line names the resource by its pattern. It has no path, query, header or body that a client sent, only the method,
/// the request id and, optionally, the `sub` of its identity, none of which can forge lines.
package final class AccessLogger: AccessLog {
  /// The maximum number of characters of a method in a line.
  private static let methodLength = 32

  private let level: Locked<AccessLogLevel>
  /// True if the level is not `off`. Read for every request, without the lock.
  private let isOn: Atomic<Bool>
  /// True if lines have the `sub` of the identity that sent the request.
  private let namesIdentities: Bool
  private let output: LogOutput

  /// Creates a log with this level. With `namesIdentities`, lines have the `sub` of the identity that sent the request.
  package init(_ level: AccessLogLevel, namesIdentities: Bool = false, output: LogOutput) {
    self.level = Locked(level)
    self.namesIdentities = namesIdentities
    isOn = Atomic(level != .off)
    self.output = output
  }

  /// True if any record is written.
  package var isWanted: Bool { isOn.load(ordering: .relaxed) }

  /// Sets the level of the records to write from now on.
  package func set(_ level: AccessLogLevel) {
    self.level.withLock {
      $0 = level
      isOn.store(level != .off, ordering: .relaxed)
    }
  }

  /// Writes the line of a record if the level includes it.
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

/// The requests that the access log records.
package enum AccessLogLevel: String, CaseIterable, Sendable {
  /// None.
  case off
  /// Requests with a status of 400 or above or without a response, and streams whose clients were too slow.
  case errors
  /// All.
  case all
}
