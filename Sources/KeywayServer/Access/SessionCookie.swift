import Crypto
package import HTTPServer
import HTTPTypes

/// The session cookie of a request (RFC 6265bis).
///
/// On a connection that is meant to be secure it has the prefix `__Host-`, so that browsers accept it only from this
/// host over TLS: no other host of the domain can give a visitor a session that is not theirs.
package struct SessionCookie: Sendable {
  /// The name on plain connections.
  static let name = "keyway_session"
  /// The name on secure connections.
  static let secureName = "__Host-keyway_session"

  /// The secret in it. Nil if the server never issued such a value, or issues it under the other name here.
  let secret: SessionSecret?

  /// Finds the session cookie. Nil if there is none; throws `malformed-request` if there are two, of either name.
  package init?(in request: borrowing Request) throws(Problem) {
    guard let cookies = request.header(.cookie) else { return nil }
    var found: (name: String, value: String)?
    for pair in cookies.split(separator: ";") {
      guard let equals = pair.firstIndex(of: "=") else { continue }
      let name = pair[..<equals].trimmingSpaces()
      guard name == Self.name || name == Self.secureName else { continue }
      guard found == nil else {
        throw Problem(
          .malformedRequest, "the request has two session cookies; send one of \(Self.name) and \(Self.secureName)")
      }
      found = (name, pair[pair.index(after: equals)...].trimmingSpaces())
    }
    guard let found else { return nil }
    // Another host of the domain can set the plain name, so on secure connections it counts for nothing.
    let isUsable = found.name == Self.secureName || !Self.isSecure(request)
    secret = isUsable ? SessionSecret(text: found.value) : nil
  }

  /// Returns the `Set-Cookie` field of a session that lasts a number of seconds.
  static func setting(_ secret: SessionSecret, isSecure: Bool, seconds: Int) -> String {
    "\(isSecure ? secureName : name)=\(secret.text)" + attributes(isSecure: isSecure, seconds: seconds)
  }

  /// Returns the `Set-Cookie` field that makes a browser forget the session.
  static func clearing(isSecure: Bool) -> String {
    "\(isSecure ? secureName : name)=" + attributes(isSecure: isSecure, seconds: 0)
  }

  /// Reads the secret from the `Set-Cookie` field of another node. Nil if there is none.
  static func secret(set field: String) -> SessionSecret? {
    let pair = field.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1)
    guard pair.count == 2, pair[0] == name || pair[0] == secureName else { return nil }
    return SessionSecret(text: pair[1])
  }

  /// The `Cookie` field for forwarding a request with this cookie to another node, over any kind of connection. Nil if
  /// the server did not issue the value.
  package var forwarded: String? { secret.map { "\(Self.secureName)=\($0.text)" } }

  /// True if the cookie must not go over a plain connection. A trusted proxy may say that the request came over TLS;
  /// otherwise a client that names this server by a loopback name alone has no proxy with TLS in front of it.
  static func isSecure(_ request: borrowing Request) -> Bool {
    if request.isForwardedOverTLS { return true }
    guard let host = Target.authority(of: request.target) ?? request.header(.hostName) else { return true }
    return !HostNames.isLoopback(host)
  }

  private static func attributes(isSecure: Bool, seconds: Int) -> String {
    "; Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
  }
}

/// The credential of a session: 256 random bits. Its holder has them; the server keeps only their digest.
package struct SessionSecret: Sendable {
  /// The bits as a cookie carries them: 43 characters of base64url (RFC 4648 §5), without padding.
  package let text: String
  /// The digest by which the server recognizes them.
  package let digest: SessionDigest

  /// Creates a secret from the random numbers of the operating system.
  package init() {
    let bytes = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
    (text, digest) = (Base64URL.text(of: bytes), SessionDigest(of: bytes))
  }

  /// Reads the text of a secret. Nil unless it has the form of one; no two texts stand for the same bits.
  package init?(text: some StringProtocol) {
    guard text.utf8.count == Self.characterCount, let bytes = Base64URL.bytes(of: text) else { return nil }
    (self.text, digest) = (String(text), SessionDigest(of: bytes))
  }

  private static let characterCount = 43
}

/// The SHA-256 (FIPS 180-4) of a session's secret, from which the secret cannot be derived.
package struct SessionDigest: Hashable, Sendable {
  /// The length of the digest in bytes.
  package static let byteCount = 32

  private let words: SIMD4<UInt64>

  /// The digest of the bits of a secret.
  init(of secret: [UInt8]) {
    words = SHA256.hash(data: secret).withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  /// Reads a stored digest. Nil unless there are `byteCount` bytes.
  package init?(bytes: ArraySlice<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    words = bytes.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  /// The bytes of the digest.
  package var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }
}
