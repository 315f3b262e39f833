/// Why a conversation over a socket cannot go on.
package struct WireError: Error, CustomStringConvertible {
  /// What happened.
  package enum Reason: Sendable {
    case connectionRefused
    case connectionReset
    case connectionClosed
    case timedOut
    case malformed
    case unexpectedStatus(Int)
  }

  package let reason: Reason
  package let description: String

  package init(_ reason: Reason, _ detail: String = "") {
    self.reason = reason
    description = detail.isEmpty ? "\(reason)" : "\(reason): \(detail)"
  }
}
