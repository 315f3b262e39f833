package import HTTPTypes

extension HTTPField.Name {
  private static func named(_ text: String) -> HTTPField.Name {
    guard let name = HTTPField.Name(text) else { preconditionFailure("'\(text)' is not a field name") }
    return name
  }

  /// `Host`. In swift-http-types it exists only as a pseudo header.
  package static let hostName = named("Host")
  /// `Keyway-Cursor`: the state that a response shows, or the commit of a write.
  package static let keywayCursor = named("Keyway-Cursor")
  /// `Keyway-Writer`: the name of the client that writes.
  package static let keywayWriter = named("Keyway-Writer")
  /// `Keyway-Lifetime`: the lifetime of the written object.
  package static let keywayLifetime = named("Keyway-Lifetime")
  /// `Keyway-Forwarded`: on a request that a node forwards by a name. The receiver must answer it itself or not at all.
  package static let keywayForwarded = named("Keyway-Forwarded")
  /// `Keyway-Nodes`: on a follower's request for records, the nodes that follow it. On the response, a value that
  /// changes with the known nodes.
  package static let keywayNodes = named("Keyway-Nodes")
  /// `Keyway-Records`: on a batch of writes that a node forwards, the position that the node has reached in the
  /// journal.
  package static let keywayRecords = named("Keyway-Records")
  /// `Keyway-Access`: on records for a follower, present if the node authenticates its clients.
  package static let keywayAccess = named("Keyway-Access")
  /// `Keyway-Node`: the token of the node that sends a request whose `Authorization` is the client's.
  package static let keywayNode = named("Keyway-Node")
  /// `Keyway-Revocations`: on a follower's request for records, the digest of the revocations that it has.
  package static let keywayRevocations = named("Keyway-Revocations")
  /// `Keyway-Request`: the name, among nodes, of a forwarded write.
  package static let keywayRequest = named("Keyway-Request")
  /// `Idempotency-Key`: makes a retried `POST` apply once.
  package static let idempotencyKey = named("Idempotency-Key")
  /// `Idempotency-Replayed`: on a stored response that is sent again for a retry.
  package static let idempotencyReplayed = named("Idempotency-Replayed")
  /// `Last-Event-ID`: the cursor that a stream resumes from.
  package static let lastEventID = named("Last-Event-ID")
  /// `Accept-Patch` (RFC 5789 §3.1).
  package static let acceptPatch = named("Accept-Patch")
  /// `Link` (RFC 8288).
  package static let link = named("Link")
  /// `Referrer-Policy` (W3C): how much of its URL a page sends to the pages that it links to.
  package static let referrerPolicy = named("Referrer-Policy")
  /// `X-Accel-Buffering`: asks nginx not to buffer.
  package static let accelBuffering = named("X-Accel-Buffering")
}

/// Helpers to read header fields and parameters.
extension StringProtocol {
  /// Returns the text without spaces and tabs at its ends.
  package func trimmingSpaces() -> String {
    let isSpace = { (character: Character) in character == " " || character == "\t" }
    guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else {
      return ""
    }
    return String(self[first...last])
  }

  /// True if the text consists of one or more decimal digits.
  var isDecimal: Bool { !isEmpty && utf8.allSatisfy { (0x30...0x39).contains($0) } }

  /// True if the text consists of visible ASCII characters only.
  var isVisibleASCII: Bool { utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
