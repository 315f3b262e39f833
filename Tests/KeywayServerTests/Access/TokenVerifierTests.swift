import Crypto
import CryptoExtras
import Foundation
import KeyValueModel
import TestKit
import Testing

@testable import KeywayServer

@Suite("Tokens")
struct TokenVerifierTests {
  private static let now = 1_300_000_000.0

  private static func text(_ bytes: some Sequence<UInt8>) -> String { Base64URL.text(of: bytes) }

  /// Makes a token of a header and claims as JSON texts, signed by `sign`.
  private static func token(_ header: String, _ claims: String, _ sign: ([UInt8]) throws -> [UInt8]) rethrows -> String
  {
    let signed = text(header.utf8) + "." + text(claims.utf8)
    return signed + "." + text(try sign(Array(signed.utf8)))
  }

  private static let claims = #"{"sub":"alice","exp":1300000100,"iat":1299999990}"#

  /// A signer for each algorithm, with its key as a JWK.
  private struct Signer {
    let algorithm: String
    let key: String
    let sign: ([UInt8]) throws -> [UInt8]
  }

  private static func signers() throws -> [Signer] {
    let secret = [UInt8](repeating: 7, count: 64)
    let symmetric = SymmetricKey(data: secret)
    let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let primitives = try rsa.publicKey.getKeyPrimitives()
    let (p256, p384, ed) = (P256.Signing.PrivateKey(), P384.Signing.PrivateKey(), Curve25519.Signing.PrivateKey())
    func secretKey(_ algorithm: String) -> String { #"{"kty":"oct","alg":"\#(algorithm)","k":"\#(text(secret))"}"# }
    func rsaKey(_ algorithm: String) -> String {
      let (modulus, exponent) = (text(primitives.modulus), text(primitives.publicExponent))
      return #"{"kty":"RSA","alg":"\#(algorithm)","n":"\#(modulus)","e":"\#(exponent)"}"#
    }
    func point(_ algorithm: String, _ curve: String, _ bytes: Data) -> String {
      let (x, y) = (bytes.prefix(bytes.count / 2), bytes.suffix(bytes.count / 2))
      return #"{"kty":"EC","alg":"\#(algorithm)","crv":"\#(curve)","x":"\#(text(x))","y":"\#(text(y))"}"#
    }
    return [
      Signer(algorithm: "HS256", key: secretKey("HS256")) {
        Array(HMAC<SHA256>.authenticationCode(for: $0, using: symmetric))
      },
      Signer(algorithm: "HS384", key: secretKey("HS384")) {
        Array(HMAC<SHA384>.authenticationCode(for: $0, using: symmetric))
      },
      Signer(algorithm: "HS512", key: secretKey("HS512")) {
        Array(HMAC<SHA512>.authenticationCode(for: $0, using: symmetric))
      },
      Signer(algorithm: "RS256", key: rsaKey("RS256")) {
        Array(try rsa.signature(for: SHA256.hash(data: $0), padding: .insecurePKCS1v1_5).rawRepresentation)
      },
      Signer(algorithm: "PS256", key: rsaKey("PS256")) {
        Array(try rsa.signature(for: SHA256.hash(data: $0), padding: .PSS).rawRepresentation)
      },
      Signer(algorithm: "ES256", key: point("ES256", "P-256", p256.publicKey.rawRepresentation)) {
        Array(try p256.signature(for: $0).rawRepresentation)
      },
      Signer(algorithm: "ES384", key: point("ES384", "P-384", p384.publicKey.rawRepresentation)) {
        Array(try p384.signature(for: $0).rawRepresentation)
      },
      Signer(
        algorithm: "EdDSA",
        key: #"{"kty":"OKP","alg":"EdDSA","crv":"Ed25519","x":"\#(text(ed.publicKey.rawRepresentation))"}"#
      ) { Array(try ed.signature(for: $0)) },
    ]
  }

  private static func set(_ keys: [String]) throws -> KeySet {
    try KeySet(json: Array(#"{"keys":[\#(keys.joined(separator: ","))]}"#.utf8))
  }

  @Test("Each algorithm verifies what its key has signed, and no other key, algorithm or text")
  func algorithms() throws {
    let signers = try Self.signers()
    #expect(signers.map(\.algorithm) == SigningAlgorithm.allCases.map(\.rawValue))
    let all = TokenVerifier(keys: try Self.set(signers.map(\.key)))
    let others = TokenVerifier(keys: try Self.set(try Self.signers().map(\.key)))
    for signer in signers {
      let token = try Self.token(#"{"alg":"\#(signer.algorithm)"}"#, Self.claims, signer.sign)
      #expect(try all.verify(token, now: Self.now).subject == "alice")
      // The secrets of both sets are the same.
      if !signer.algorithm.hasPrefix("HS") {
        #expect(throws: TokenDefect.forged) { try others.verify(token, now: Self.now) }
      }
      for other in signers where other.algorithm != signer.algorithm {
        let relabelled = try Self.token(#"{"alg":"\#(other.algorithm)"}"#, Self.claims, signer.sign)
        #expect(throws: TokenDefect.forged) { try all.verify(relabelled, now: Self.now) }
        let alone = TokenVerifier(keys: try Self.set([other.key]))
        #expect(throws: TokenDefect.unknownKey) { try alone.verify(token, now: Self.now) }
      }
      var bytes = Array(token.utf8)
      let signature = token.utf8.count - token.split(separator: ".")[2].utf8.count
      for index in stride(from: 0, to: signature - 1, by: 7) where bytes[index] != UInt8(ascii: ".") {
        let former = bytes[index]
        bytes[index] = former == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        #expect(throws: TokenDefect.self) { try all.verify(String(decoding: bytes, as: UTF8.self), now: Self.now) }
        bytes[index] = former
      }
    }
  }

  @Test("A sub that no revocation could name is refused")
  func longSubject() throws {
    let signer = try #require(try Self.signers().first)
    let verifier = TokenVerifier(keys: try Self.set([signer.key]))
    func verify(_ subject: String) throws -> Identity {
      let claims = #"{"sub":"\#(subject)","exp":1300000100}"#
      return try verifier.verify(try Self.token(#"{"alg":"HS256"}"#, claims, signer.sign), now: Self.now)
    }
    let longest = String(repeating: "é", count: TokenVerifier.maximumSubjectBytes / 2)
    #expect(try verify(longest).subject == longest)
    #expect(throws: TokenDefect.subjectTooLong) { try verify(longest + "x") }
  }

  @Test("The example of RFC 7515, A.1: its signature is good, and a 'sub' is wanted")
  func example() throws {
    let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
    let key = #"{"kty":"oct","alg":"HS256","k":"\#(secret)"}"#
    let token =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"
      + ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
      + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    let verifier = TokenVerifier(keys: try Self.set([key]))
    #expect(throws: TokenDefect.withoutSubject) { try verifier.verify(token, now: Self.now) }
    #expect(throws: TokenDefect.forged) { try verifier.verify(token.dropLast(2) + "jk", now: Self.now) }
  }

  /// Returns the verdict on claims and a header with a valid HS256 signature.
  private func verdict(
    _ claims: String, header: String = #"{"alg":"HS256"}"#, keys: [String]? = nil, issuer: String? = nil,
    audience: String? = nil, longestLife: Double = 0, at now: Double = TokenVerifierTests.now
  ) throws -> TokenDefect? {
    let signer = try Self.signers()[0]
    let verifier = TokenVerifier(
      keys: try Self.set(keys ?? [signer.key]), issuer: issuer, audience: audience, longestLife: longestLife)
    let token = try Self.token(header, claims, signer.sign)
    do throws(TokenDefect) {
      _ = try verifier.verify(token, now: now)
      return nil
    } catch {
      return error
    }
  }

  @Test("Claims: times with leeway, a subject, an issuer and an audience")
  func claims() throws {
    #expect(try verdict(Self.claims) == nil)
    #expect(try verdict(Self.claims, at: 1_300_000_109) == nil)
    #expect(try verdict(Self.claims, at: 1_300_000_110) == .expired)
    #expect(try verdict(#"{"sub":"a"}"#) == .withoutExpiry)
    #expect(try verdict(#"{"sub":"a","exp":"1300000100"}"#) == .withoutExpiry)
    #expect(try verdict(#"{"sub":"a","exp":1300000100.5}"#) == nil)
    #expect(try verdict(#"{"exp":1300000100}"#) == .withoutSubject)
    #expect(try verdict(#"{"sub":7,"exp":1300000100}"#) == .withoutSubject)
    #expect(try verdict(#"{"sub":"a","exp":1300000100,"nbf":1300000010}"#) == nil)
    #expect(try verdict(#"{"sub":"a","exp":1300000100,"nbf":1300000011}"#) == .early)
    #expect(try verdict(#"{"sub":"a","exp":1300000100,"iat":1300000011}"#) == .early)
    #expect(try verdict(#"{"sub":"a","exp":1300000100,"iat":"now"}"#) == .malformed)
    #expect(try verdict(#"{"sub":"a","exp":1300000100,"sub":"b"}"#) == .malformed)
    #expect(try verdict(#"["sub"]"#) == .malformed)
    let addressed = #"{"sub":"a","exp":1300000100,"iss":"login","aud":["x","keyway"]}"#
    #expect(try verdict(addressed, issuer: "login", audience: "keyway") == nil)
    #expect(try verdict(addressed, issuer: "logon") == .otherIssuer)
    #expect(try verdict(addressed, audience: "y") == .otherAudience)
    for audience in [#"["keyway",1]"#, "1", #"[["keyway"]]"#] {
      let claims = #"{"sub":"a","exp":1300000100,"aud":\#(audience)}"#
      #expect(try verdict(claims, audience: "keyway") == .malformed)
    }
    #expect(try verdict(Self.claims, issuer: "login") == .otherIssuer)
    #expect(try verdict(Self.claims, audience: "keyway") == .otherAudience)
    #expect(try verdict(#"{"sub":"a","exp":1300000100,"aud":"keyway"}"#, audience: "keyway") == nil)
  }

  @Test(
    "The life of a token is bounded from its iat, or from the present without one; exp is no number of milliseconds")
  func life() throws {
    #expect(try verdict(Self.claims, longestLife: 110) == nil)
    #expect(try verdict(Self.claims, longestLife: 109) == .tooLong)
    let undated = #"{"sub":"a","exp":1300000100}"#
    #expect(try verdict(undated, longestLife: 100) == nil)
    #expect(try verdict(undated, longestLife: 99) == .tooLong)
    #expect(try verdict(undated, longestLife: 99, at: Self.now + 1) == nil)
    // A later iat does not extend the life of a token.
    #expect(try verdict(#"{"sub":"a","exp":1300000109,"iat":1300000009}"#, longestLife: 100) == .tooLong)
    let centuries = #"{"sub":"a","exp":99999999999}"#
    #expect(try verdict(centuries) == nil)
    #expect(try verdict(centuries, longestLife: 315_360_000) == .tooLong)
    #expect(try verdict(#"{"sub":"a","exp":1300000100000}"#) == .expiryInMilliseconds)
    #expect(TokenDefect.expiryInMilliseconds.reason.contains("milliseconds"))
  }

  @Test("Headers: never none, no critical extension, and the only key that is meant")
  func headers() throws {
    let key = try Self.signers()[0].key
    let named = key.dropLast() + #","kid":"a"}"#
    let other = key.dropLast() + #","kid":"b"}"#
    #expect(try verdict(Self.claims, header: #"{"alg":"none"}"#) == .unknownKey)
    #expect(try verdict(Self.claims, header: #"{"alg":"hs256"}"#) == .unknownKey)
    #expect(try verdict(Self.claims, header: #"{"alg":"HS384"}"#) == .unknownKey)
    #expect(try verdict(Self.claims, header: #"{}"#) == .malformed)
    #expect(try verdict(Self.claims, header: #"{"alg":"HS256","crit":["exp"]}"#) == .malformed)
    #expect(try verdict(Self.claims, header: #"{"alg":"HS256","kid":"a"}"#) == .unknownKey)
    #expect(try verdict(Self.claims, header: #"{"alg":"HS256","kid":"a"}"#, keys: [String(named)]) == nil)
    #expect(try verdict(Self.claims, header: #"{"alg":"HS256","kid":7}"#, keys: [String(named)]) == .malformed)
    #expect(try verdict(Self.claims, keys: [String(named)]) == nil)
    #expect(try verdict(Self.claims, keys: [String(named), String(other)]) == .unknownKey)
    #expect(try verdict(Self.claims, keys: []) == .unknownKey)
  }

  @Test(
    "A text that is not a compact JWT is malformed",
    arguments: ["", ".", "..", "a.b.c", "a.b", "e30.e30.e30.e30", "e30=.e30.AA", " e30.e30.AA", "e31.e30.AA"])
  func shapes(token: String) throws {
    let verifier = TokenVerifier(keys: try Self.set([try Self.signers()[0].key]))
    #expect(throws: TokenDefect.malformed) { try verifier.verify(token, now: Self.now) }
    let long = String(repeating: "a", count: TokenVerifier.maximumBytes) + "." + token
    #expect(throws: TokenDefect.malformed) { try verifier.verify(long, now: Self.now) }
  }

  @Test("Any bytes in the place of a token are refused")
  func anyBytes() throws {
    let signer = try Self.signers()[0]
    let verifier = TokenVerifier(keys: try Self.set([signer.key]))
    let token = try Self.token(#"{"alg":"HS256"}"#, Self.claims, signer.sign)
    let fuzzer = Fuzzer("tokens", rounds: 2_000)
    let failure = fuzzer.run { random -> String in
      var bytes = Array(token.utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[place] = .random(in: 0...255, using: &random)
        case 1: bytes.remove(at: place)
        default: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: place)
        }
      }
      return String(decoding: bytes, as: UTF8.self)
    } describe: {
      $0.debugDescription
    } check: { mangled in
      mangled != token && (try? verifier.verify(mangled, now: Self.now)) != nil ? "it was taken" : nil
    }
    if let failure { Issue.record("\(failure)") }
  }
}
