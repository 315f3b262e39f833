/// Why a token is not good. It says nothing of what the token holds.
package enum TokenDefect: Error, Hashable, Sendable {
  case absent, malformed, unknownKey, forged, expired, early, withoutExpiry, expiryInMilliseconds, tooLong,
    withoutSubject, subjectTooLong, otherIssuer, otherAudience, revoked

  /// The reason, as a sentence's predicate.
  package var reason: String {
    switch self {
    case .absent: "is missing"
    case .malformed: "is no signed JWT"
    case .unknownKey: "is signed with no key of this server, or by another algorithm than that key's"
    case .forged: "has a signature that is not right"
    case .expired: "has expired"
    case .early: "is not valid yet"
    case .withoutExpiry: "has no 'exp', which is a number of seconds"
    case .expiryInMilliseconds: "has an 'exp' in milliseconds; it must be a number of seconds"
    case .tooLong: "is valid for longer than access.tokenSeconds allows"
    case .withoutSubject: "has no 'sub', which is a text"
    case .subjectTooLong: "has a 'sub' of more than \(TokenVerifier.maximumSubjectBytes) bytes"
    case .otherIssuer: "is from another issuer"
    case .otherAudience: "is for another audience"
    case .revoked: "is revoked, or does not say when it was issued while others of its 'sub' are"
    }
  }
}
