import Glibc

/// An error that ends a conversation over a socket, or with a child process.
package struct LoopbackError: Error, CustomStringConvertible {
  /// The kind of error.
  package enum Reason: Hashable, Sendable {
    /// Nothing listens on the port.
    case connectionRefused
    /// The other side, or the network, reset the connection.
    case connectionReset
    /// The other side closed the connection before the message was whole.
    case connectionClosed
    /// Nothing was received within the time.
    case timedOut
    /// The received bytes are not HTTP, or not an event stream.
    case malformed
    /// The response has another status than expected.
    case unexpectedStatus(Int)
    /// The task was cancelled.
    case interrupted
    /// A system call failed, or an error that only the description explains.
    case failed
  }

  /// The kind of error, for programs.
  package let reason: Reason
  /// The error as a sentence.
  package let description: String

  /// Creates an error with this reason; `detail` follows it in the description.
  package init(_ reason: Reason, _ detail: String = "") {
    self.reason = reason
    description = detail.isEmpty ? "\(reason)" : "\(reason): \(detail)"
  }

  /// Creates a failure with a description.
  package init(_ description: String) {
    reason = .failed
    self.description = description
  }

  /// Creates the error of a failed system call, with the text of errno.
  package init(call: String, _ reason: Reason = .failed) {
    self.reason = reason
    description = "\(call): \(String(cString: strerror(errno)))"
  }
}
