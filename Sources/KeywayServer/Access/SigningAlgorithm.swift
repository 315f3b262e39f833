/// What a token may be signed with (RFC 7518 §3.1, RFC 8037 §3.1). There is no `none`.
package enum SigningAlgorithm: String, CaseIterable, Sendable {
  case hs256 = "HS256"
  case hs384 = "HS384"
  case hs512 = "HS512"
  case rs256 = "RS256"
  case ps256 = "PS256"
  case es256 = "ES256"
  case es384 = "ES384"
  case edDSA = "EdDSA"

  /// All of them, for messages.
  static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
