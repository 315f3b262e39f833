package import KeyValueModel

/// Who asks: the claims of a verified token (RFC 7519 §4).
package struct Identity: Sendable {
  /// All claims.
  package let claims: JSONObject
  /// `sub`.
  package let subject: String
  /// When it ends, in seconds since 1970, without any leeway.
  package let expires: Double
  /// When it was issued, in seconds since 1970.
  package let issued: Double?
  /// The key that its token is signed with.
  package let key: KeyMark

  /// An identity of these parts.
  package init(claims: JSONObject, subject: String, expires: Double, issued: Double?, key: KeyMark) {
    (self.claims, self.subject) = (claims, subject)
    (self.expires, self.issued, self.key) = (expires, issued, key)
  }
}
