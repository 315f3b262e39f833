import Glibc

/// Why a conversation over a socket, or with a child process, cannot go on.
package struct LoopbackError: Error, CustomStringConvertible {
  /// What happened.
  package enum Reason: Hashable, Sendable {
    /// Nothing listens on the port.
    case connectionRefused
    /// The other side, or the network, broke the connection off.
    case connectionReset
    /// The other side closed the connection before the message was whole.
    case connectionClosed
    /// Nothing came within the time.
    case timedOut
    /// What came is no HTTP, or no event stream.
    case malformed
    /// The response has another status than was wanted.
    case unexpectedStatus(Int)
    /// The task was cancelled.
    case interrupted
    /// A system call failed, or something that only the description says.
    case failed
  }

  /// What happened, for programs.
  package let reason: Reason
  /// The same as a sentence.
  package let description: String

  /// An error with this reason; `detail` follows it in the description.
  package init(_ reason: Reason, _ detail: String = "") {
    self.reason = reason
    description = detail.isEmpty ? "\(reason)" : "\(reason): \(detail)"
  }

  /// A failure in words.
  package init(_ description: String) {
    reason = .failed
    self.description = description
  }

  /// A failed system call, with what errno says.
  package init(call: String, _ reason: Reason = .failed) {
    self.reason = reason
    description = "\(call): \(String(cString: strerror(errno)))"
  }
}
