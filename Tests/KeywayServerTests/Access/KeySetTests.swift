import KeyValueModel
import Testing

@testable import KeywayServer

@Suite("Sets of keys")
struct KeySetTests {
  private static let secret = String(repeating: "A", count: 43)

  @Test(
    "A mistake in a set is reported, and no key of the set is used",
    arguments: [
      ("", "it is not valid JSON"), ("[]", "it is not a JWK Set"), (#"{"keys":{}}"#, "it is not a JWK Set"),
      (#"{"keys":[1]}"#, "keys[0] is refused: it is not an object"),
      (#"{"keys":[{"kty":"oct","k":"\#(secret)"}]}"#, "its 'alg' is not one of"),
      (#"{"keys":[{"kty":"oct","alg":"none","k":"\#(secret)"}]}"#, "its 'alg' is not one of"),
      (#"{"keys":[{"kty":"oct","alg":"HS256","k":"AAAA"}]}"#, "has 3 bytes; HS256 requires at least 32"),
      (#"{"keys":[{"kty":"oct","alg":"HS512","k":"\#(secret)"}]}"#, "has 32 bytes; HS512 requires at least 64"),
      (#"{"keys":[{"kty":"oct","alg":"HS256","k":"A+A"}]}"#, "its 'k' is not base64url text"),
      (#"{"keys":[{"kty":"RSA","alg":"HS256","k":"\#(secret)"}]}"#, "HS256 requires 'kty' oct"),
      (#"{"keys":[{"kty":"EC","crv":"P-384","alg":"ES256","x":"AA","y":"AA"}]}"#, "and 'crv' P-256"),
      (#"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","x":"AA","y":"AA"}]}"#, "not a point on the curve"),
      (#"{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","x":"AA"}]}"#, "not an Ed25519 key"),
      (#"{"keys":[{"kty":"RSA","alg":"RS256","n":"AQAB","e":"AQAB"}]}"#, "RSA key"),
      (#"{"keys":[{"kty":"oct","alg":"HS256","use":"enc","k":"\#(secret)"}]}"#, "its 'use' is not 'sig'"),
      (#"{"keys":[{"kty":"oct","alg":"HS256","kid":1,"k":"\#(secret)"}]}"#, "its 'kid' is not a string"),
      (
        #"{"keys":[{"kty":"oct","alg":"HS256","kid":"a","k":"\#(secret)"},"#
          + #"{"kty":"oct","alg":"HS256","kid":"a","k":"\#(secret)"}]}"#,
        "keys[1] is refused"
      ),
    ])
  func refused(text: String, reason: String) {
    let error = #expect(throws: KeyDefect.self) { try KeySet(json: Array(text.utf8)) }
    #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
    #expect(error?.description.contains(Self.secret) == false)
  }

  @Test("A new key makes tokens that it verifies")
  func development() throws {
    let set = try KeySet(json: Array(DevelopmentKey.makeSet().utf8))
    let key = try #require(DevelopmentKey(of: set))
    let token = key.token(["sub": .string("é"), "exp": .integer(100)])
    #expect(try TokenVerifier(keys: set).verify(token, now: 50).subject == "é")
    let another = try KeySet(json: Array(DevelopmentKey.makeSet().utf8))
    #expect(throws: TokenDefect.unknownKey) { try TokenVerifier(keys: another).verify(token, now: 50) }
    #expect(set.has(try TokenVerifier(keys: set).verify(token, now: 50).key))
    #expect(!another.has(try TokenVerifier(keys: set).verify(token, now: 50).key))
  }
}
