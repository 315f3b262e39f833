/// The reason why an outbound request has no complete response.
package struct OutboundFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of failure, by which a caller decides what to do next.
  package enum Kind: Hashable, Sendable {
    /// The request cannot be sent as it is.
    case invalid
    /// The limit `OutboundClient.Limits.transfers` is reached, or the system lacks memory or threads.
    case overloaded
    /// The host has no address, or nothing takes the connection, or the TLS handshake fails.
    case unreachable
    /// The server's certificate is not signed by a trusted authority, is not for this host, or has expired.
    case untrusted
    /// Nothing came in time.
    case timeout
    /// The connection ended before the response was complete, or what came is not HTTP.
    case interrupted
    /// The head or the content of the response has more bytes than the limit.
    case oversized
    /// The caller or the client's `stop()` ended the transfer.
    case cancelled
  }

  /// The kind of failure.
  package let kind: Kind
  /// The failure in words.
  package let reason: String
  /// True if the server has certainly not received any part of the request.
  package let isUnsent: Bool

  /// Makes a fault.
  package init(_ kind: Kind, _ reason: String, isUnsent: Bool) {
    (self.kind, self.reason, self.isUnsent) = (kind, reason, isUnsent)
  }

  /// The reason.
  package var description: String { reason }
}
