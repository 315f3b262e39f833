package import KeyValueModel

/// A shared secret that makes tokens as well as it verifies them: for development, and for services that trust each
/// other.
package struct DevelopmentKey: Sendable {
  private let id: String?
  private let key: VerificationKey

  /// A JWK Set with one new key for HS256, as JSON text with a newline.
  package static func makeSet() -> String {
    var random = SystemRandomNumberGenerator()
    func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: .min ... .max, using: &random) } }
    let key: JSONObject = [
      "kty": .string("oct"), "alg": .string(SigningAlgorithm.hs256.rawValue), "use": .string("sig"),
      "kid": .string(Base64URL.text(of: bytes(9))), "k": .string(Base64URL.text(of: bytes(32))),
    ]
    return Value.object(["keys": .array([.object(key)])]).json + "\n"
  }

  /// The first key of a set that can sign; nil where all are public.
  package init?(of keys: KeySet) {
    guard let entry = keys.entries.first(where: { $0.key.signature(of: []) != nil }) else { return nil }
    (id, key) = (entry.id, entry.key)
  }

  /// The token of these claims.
  package func token(_ claims: JSONObject) -> String {
    var header: JSONObject = ["alg": .string(key.algorithm.rawValue), "typ": .string("JWT")]
    if let id { header["kid"] = .string(id) }
    let signed = [header, claims].map { Base64URL.text(of: Value.object($0).json.utf8) }.joined(separator: ".")
    return signed + "." + Base64URL.text(of: key.signature(of: Array(signed.utf8)) ?? [])
  }
}
