package import HTTPTypes

extension HTTPField.Name {
  private static func named(_ text: String) -> HTTPField.Name {
    guard let name = HTTPField.Name(text) else { preconditionFailure("'\(text)' is no field name") }
    return name
  }

  /// `Host`, which swift-http-types has only as a pseudo header.
  package static let hostName = named("Host")
  /// `Keyway-Cursor`: the state that a response shows, or the commit that a write made.
  package static let keywayCursor = named("Keyway-Cursor")
  /// `Keyway-Writer`: the name under which a client writes.
  package static let keywayWriter = named("Keyway-Writer")
  /// `Keyway-Lifetime`: how long the object that is written is to last.
  package static let keywayLifetime = named("Keyway-Lifetime")
  /// `Keyway-Forwarded`: a node sends it with a request that it passes on by a name, which is answered there or not at
  /// all.
  package static let keywayForwarded = named("Keyway-Forwarded")
  /// `Keyway-Nodes`: on a follower's request for records the nodes that follow it, on the answer what changes with the
  /// nodes that are known.
  package static let keywayNodes = named("Keyway-Nodes")
  /// `Keyway-Records`: on a batch of writes that a node passes on, how far it has come.
  package static let keywayRecords = named("Keyway-Records")
  /// `Keyway-Access`: on records for a follower, says that the node asks who its clients are.
  package static let keywayAccess = named("Keyway-Access")
  /// `Keyway-Node`: the token of the node that sends a request whose `Authorization` is a client's.
  package static let keywayNode = named("Keyway-Node")
  /// `Keyway-Revocations`: on a follower's request for records, the digest of the revocations that it has.
  package static let keywayRevocations = named("Keyway-Revocations")
  /// `Keyway-Request`: what nodes call a write that one of them passes on.
  package static let keywayRequest = named("Keyway-Request")
  /// `Idempotency-Key`: makes a retried `POST` apply once.
  package static let idempotencyKey = named("Idempotency-Key")
  /// `Idempotency-Replayed`: on a response that is given again to a retry.
  package static let idempotencyReplayed = named("Idempotency-Replayed")
  /// `Last-Event-ID`: where a stream is to go on.
  package static let lastEventID = named("Last-Event-ID")
  /// `Accept-Patch` (RFC 5789 §3.1).
  package static let acceptPatch = named("Accept-Patch")
  /// `Link` (RFC 8288).
  package static let link = named("Link")
  /// `Referrer-Policy` (W3C): what a page says of itself to those whom it links to.
  package static let referrerPolicy = named("Referrer-Policy")
  /// `X-Accel-Buffering`: asks nginx not to buffer.
  package static let accelBuffering = named("X-Accel-Buffering")
}

/// What header fields and parameters are looked at for.
extension StringProtocol {
  /// The text without spaces and tabs at its ends.
  package func trimmingSpaces() -> String {
    let isSpace = { (character: Character) in character == " " || character == "\t" }
    guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else {
      return ""
    }
    return String(self[first...last])
  }

  /// Whether it is made of decimal digits alone, at least one.
  var isDecimal: Bool { !isEmpty && utf8.allSatisfy { (0x30...0x39).contains($0) } }

  /// Whether it is made of visible ASCII characters alone.
  var isVisibleASCII: Bool { utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
