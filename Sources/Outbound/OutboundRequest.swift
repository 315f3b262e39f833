/// A request to another server, sent as it stands: redirects are not followed, and no field is added but `Host`,
/// `Content-Length` and, for a body that names no type, none.
package struct OutboundRequest: Sendable {
  /// Scheme, host and port, such as `https://example.org:8443`. Only `http` and `https` are supported.
  package var origin: String
  /// The method, such as `GET`.
  package var method: String
  /// Path and query as they are sent; begins with `/`.
  package var target: String
  /// Fields in the order in which they are sent. A name or value with a line break or NUL makes the request invalid.
  package var fields: [(name: String, value: String)] = []
  /// The content; sent with `Content-Length` if it is not empty or the method is `POST`, `PUT` or `PATCH`.
  package var body: [UInt8] = []
  /// Longest time for the lookup of the host, the connection and the TLS handshake together.
  package var connectTime = Duration.seconds(5)
  /// IP address to connect to in place of the addresses of the host, which still is what the certificate must name.
  ///
  /// A caller that resolves a name and checks its addresses pins the one that it checked, so that a second lookup
  /// cannot lead elsewhere.
  package var pinnedAddress: String?

  /// Makes a request without fields and body.
  package init(_ method: String, _ origin: String, _ target: String) {
    (self.method, self.origin, self.target) = (method, origin, target)
  }

  /// True for methods that do not change anything (RFC 9110, section 9.2.1), so that a lost request may be repeated.
  var isSafe: Bool { method == "GET" || method == "HEAD" }

  /// True if the length of the body is sent.
  var hasBody: Bool { !body.isEmpty || ["POST", "PUT", "PATCH"].contains(method) }

  /// The lines of the head as libcurl takes them: one without a value ends with a semicolon, and one with nothing
  /// behind the colon takes back a field that libcurl would add. Nil if a text has a line break or NUL.
  var lines: [String]? {
    var lines = ["Accept:", "Expect:", "Content-Type:"].filter { line in
      !fields.contains { $0.name.lowercased() == line.dropLast().lowercased() }
    }
    for field in fields {
      lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }
    let isClean = (lines + [origin, method, target, pinnedAddress ?? ""]).allSatisfy { line in
      !line.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 }
    }
    return isClean ? lines : nil
  }

  /// The entry by which libcurl connects to the pinned address (`CURLOPT_CONNECT_TO`): it stands for every host and
  /// port, and keeps the port.
  var connectTo: String? {
    pinnedAddress.map { $0.contains(":") && !$0.hasPrefix("[") ? "::[\($0)]:" : "::\($0):" }
  }
}

/// The response to an outbound request.
package struct OutboundResponse: Sendable {
  /// The status, 200 to 599.
  package let status: Int
  /// The fields of the head, in the order in which they came.
  package let fields: [(name: String, value: String)]
  /// The content, without any transfer coding; empty if it is read piece by piece.
  package var body: [UInt8] = []

  /// Returns the first value of a field, whatever the case of its name, or nil.
  package subscript(name: String) -> String? {
    let name = name.lowercased()
    return fields.first { $0.name.lowercased() == name }?.value
  }
}

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

  /// The fault if the system has no memory left.
  static var lacksMemory: OutboundFault {
    OutboundFault(.overloaded, "the system has no memory left for the request", isUnsent: true)
  }

  /// The reason.
  package var description: String { reason }
}
