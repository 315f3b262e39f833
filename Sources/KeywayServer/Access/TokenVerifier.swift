import Foundation
package import KeyValueModel

/// Verifies compact JWTs (RFC 7515 §7.1, RFC 7519 §7.2) as RFC 8725 advises: the key determines the algorithm, never
/// the token.
package struct TokenVerifier: Sendable {
  /// The maximum length of a token in bytes; a longer one is malformed.
  package static let maximumBytes = 8_192
  /// The maximum length of `sub` in bytes: a revocation names it in the target of a request.
  package static let maximumSubjectBytes = 1_024

  /// The keys.
  package let keys: KeySet
  /// The required value of `iss`; nil for any.
  package let issuer: String?
  /// The value that `aud` must be or contain; nil for any.
  package let audience: String?
  /// The tolerated difference between clocks, in seconds.
  package let leeway: Double
  /// The longest life of a token, in seconds from `iat`, or from the present if it has none, to `exp`; 0 for no limit.
  package let longestLife: Double

  /// The least `exp` that is taken for a number of milliseconds: as seconds, it is in the year 5138.
  private static let leastMilliseconds: Double = 100_000_000_000

  /// Creates a verifier. `leeway` and `longestLife` are in seconds.
  package init(
    keys: KeySet, issuer: String? = nil, audience: String? = nil, leeway: Double = 10, longestLife: Double = 0
  ) {
    (self.keys, self.issuer, self.audience, self.leeway) = (keys, issuer, audience, leeway)
    self.longestLife = longestLife
  }

  /// Returns the identity of a token; `now` is in seconds since 1970. Throws the reason why the token is not valid: its
  /// signature is checked before its claims.
  package func verify(_ token: String, now: Double) throws(TokenDefect) -> Identity {
    guard token.utf8.count <= Self.maximumBytes else { throw .malformed }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let signature = Base64URL.bytes(of: parts[2]),
      let header = Self.object(parts[0]), let payload = Base64URL.bytes(of: parts[1])
    else { throw .malformed }
    // Extensions that must be understood are not supported (RFC 7515 §4.1.11), and headers that say where the key is to
    // be found are not trusted (RFC 8725 §3.5): all such headers are ignored, except that `crit` is refused.
    guard header["crit"] == nil, let name = header["alg"]?.asString else { throw .malformed }
    var id: String?
    if let kid = header["kid"] {
      guard let text = kid.asString else { throw .malformed }
      id = text
    }
    guard let algorithm = SigningAlgorithm(rawValue: name), let entry = keys.entry(named: id, for: algorithm) else {
      throw .unknownKey
    }
    guard entry.key.verifies(signature, of: Array(token.utf8.dropLast(parts[2].utf8.count + 1))) else { throw .forged }
    guard case .object(let claims)? = try? Value(json: payload, depthLimit: 32) else { throw .malformed }
    let identity = try identity(of: claims, key: entry.mark)
    try check(identity, now: now)
    return identity
  }

  /// Checks that an identity, verified before, is still valid at a time. Throws `expired`, `early`, `tooLong` or
  /// `malformed`.
  package func check(_ identity: Identity, now: Double) throws(TokenDefect) {
    guard now < identity.expires + leeway else { throw .expired }
    if let start = identity.claims["nbf"] {
      guard let start = start.seconds else { throw .malformed }
      guard start <= now + leeway else { throw .early }
    }
    if let issued = identity.issued, issued > now + leeway { throw .early }
    if longestLife > 0, identity.expires - min(identity.issued ?? now, now) > longestLife { throw .tooLong }
  }

  /// Returns the identity of claims that were verified before, by a key with this mark, without their token. Throws
  /// `unknownKey` if the key is gone, and `otherIssuer` or `otherAudience` if these have changed since; `check` checks
  /// the times.
  package func restored(_ claims: JSONObject, key: KeyMark) throws(TokenDefect) -> Identity {
    guard keys.has(key) else { throw .unknownKey }
    return try identity(of: claims, key: key)
  }

  private func identity(of claims: JSONObject, key: KeyMark) throws(TokenDefect) -> Identity {
    guard let expires = claims["exp"]?.seconds else { throw .withoutExpiry }
    guard expires < Self.leastMilliseconds else { throw .expiryInMilliseconds }
    guard let subject = claims["sub"]?.asString else { throw .withoutSubject }
    guard subject.utf8.count <= Self.maximumSubjectBytes else { throw .subjectTooLong }
    if claims["iat"] != nil, claims["iat"]?.seconds == nil { throw .malformed }
    if let issuer, claims["iss"]?.asString != issuer { throw .otherIssuer }
    if let audience {
      let audiences: [Value] =
        switch claims["aud"] {
        case .array(let list)?: list
        case let one?: [one]
        case nil: []
        }
      // A string, or an array of strings (RFC 7519 §4.1.3).
      guard audiences.allSatisfy({ $0.asString != nil }) else { throw .malformed }
      guard audiences.contains(where: { $0.asString == audience }) else { throw .otherAudience }
    }
    return Identity(claims: claims, subject: subject, expires: expires, issued: claims["iat"]?.seconds, key: key)
  }

  private static func object(_ part: some StringProtocol) -> JSONObject? {
    guard let bytes = Base64URL.bytes(of: part), case .object(let object)? = try? Value(json: bytes, depthLimit: 16)
    else { return nil }
    return object
  }
}

/// The reason why a token is not valid. It reveals nothing of what the token holds.
package enum TokenDefect: Error, Hashable, Sendable {
  case absent, malformed, unknownKey, forged, expired, early, withoutExpiry, expiryInMilliseconds, tooLong,
    withoutSubject, subjectTooLong, otherIssuer, otherAudience, revoked, unknownSession

  /// The reason, as the predicate of a sentence.
  package var reason: String {
    switch self {
    case .absent: "is missing"
    case .malformed: "is not a signed JWT"
    case .unknownKey: "is not signed with a key of this server, or not by the algorithm of that key"
    case .forged: "has an invalid signature"
    case .expired: "has expired"
    case .early: "is not valid yet"
    case .withoutExpiry: "has no 'exp' that is a number of seconds"
    case .expiryInMilliseconds: "has an 'exp' in milliseconds; it must be a number of seconds"
    case .tooLong: "is valid for longer than access.tokenSeconds allows"
    case .withoutSubject: "has no 'sub' that is a string"
    case .subjectTooLong: "has a 'sub' of more than \(TokenVerifier.maximumSubjectBytes) bytes"
    case .otherIssuer: "is from another issuer"
    case .otherAudience: "is for another audience"
    case .unknownSession: "is not that of a session, or the session has ended"
    case .revoked: "is revoked, or has no 'iat' although tokens of its 'sub' are revoked"
    }
  }
}

/// The identity of a requester: the claims of a verified token (RFC 7519 §4), or of an account.
package struct Identity: Sendable {
  /// All claims.
  package let claims: JSONObject
  /// `sub`.
  package let subject: String
  /// The expiry, in seconds since 1970, without any leeway.
  package let expires: Double
  /// The time of issue, in seconds since 1970, or that of the sign-in; nil if the token does not say.
  package let issued: Double?
  /// The key that its token is signed with; the mark of its account if it has one.
  package let key: KeyMark
  /// True if a password proved it, and not a token.
  let isOfAccount: Bool

  /// Creates an identity from its parts.
  package init(
    claims: JSONObject, subject: String, expires: Double, issued: Double?, key: KeyMark, isOfAccount: Bool = false
  ) {
    (self.claims, self.subject) = (claims, subject)
    (self.expires, self.issued, self.key) = (expires, issued, key)
    self.isOfAccount = isOfAccount
  }
}

/// Base64 for URLs, without padding (RFC 4648 §5, RFC 7515 §2).
enum Base64URL {
  /// Returns the bytes that a text stands for, or nil if it has other characters, padding, or bits that no byte has, so
  /// that no two texts stand for the same bytes.
  static func bytes(of text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count * 3 / 4)
    var (buffer, bitCount): (UInt32, Int) = (0, 0)
    for character in text.utf8 {
      guard let bits = bits(of: character) else { return nil }
      buffer = buffer << 6 | bits
      bitCount += 6
      guard bitCount >= 8 else { continue }
      bitCount -= 8
      bytes.append(UInt8(truncatingIfNeeded: buffer >> bitCount))
    }
    guard bitCount < 6, buffer & (1 << bitCount - 1) == 0 else { return nil }
    return bytes
  }

  /// Returns the six bits of a character, or nil if it is outside of the alphabet.
  private static func bits(of character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }

  /// Returns the text that stands for bytes.
  static func text(of bytes: some Sequence<UInt8>) -> String {
    String(
      Data(bytes).base64EncodedString().compactMap { character in
        switch character {
        case "+": "-"
        case "/": "_"
        case "=": nil
        default: character
        }
      })
  }
}

extension Value {
  /// The value as a `NumericDate` (RFC 7519 §2), in seconds since 1970; nil if it is not a number.
  fileprivate var seconds: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value), .rounded(let value): value
    default: nil
    }
  }
}
