import Crypto
import CryptoExtras
import Foundation

/// A key that verifies signatures by exactly one algorithm (RFC 8725 §3.1).
struct VerificationKey: Sendable {
  /// The material of a key, checked.
  private enum Material: Sendable {
    case secret(SymmetricKey)
    case rsa(_RSA.Signing.PublicKey)
    case p256(P256.Signing.PublicKey)
    case p384(P384.Signing.PublicKey)
    case ed25519(Curve25519.Signing.PublicKey)
  }

  let algorithm: SigningAlgorithm
  private let material: Material

  private init(_ algorithm: SigningAlgorithm, _ material: Material) {
    (self.algorithm, self.material) = (algorithm, material)
  }

  /// Creates a shared secret for HS256, HS384 or HS512. It has at least as many bytes as the hash (RFC 7518 §3.2).
  static func secret(_ bytes: [UInt8], for algorithm: SigningAlgorithm) throws(KeyDefect) -> VerificationKey {
    let minimum =
      switch algorithm {
      case .hs384: 48
      case .hs512: 64
      default: 32
      }
    guard bytes.count >= minimum else {
      throw KeyDefect("its 'k' has \(bytes.count) bytes; \(algorithm.rawValue) requires at least \(minimum)")
    }
    return VerificationKey(algorithm, .secret(SymmetricKey(data: bytes)))
  }

  /// Creates an RSA key for RS256 or PS256, of at least 2048 bits (RFC 7518 §3.3).
  static func rsa(
    modulus: [UInt8], exponent: [UInt8], for algorithm: SigningAlgorithm
  ) throws(KeyDefect) -> VerificationKey {
    guard let key = try? _RSA.Signing.PublicKey(n: modulus, e: exponent) else {
      throw KeyDefect("its 'n' and 'e' are not an RSA key")
    }
    guard key.keySizeInBits >= 2_048 else { throw KeyDefect("its RSA key has fewer than 2048 bits") }
    return VerificationKey(algorithm, .rsa(key))
  }

  /// Creates a key from a point of the curve of ES256 or ES384.
  static func point(_ x: [UInt8], _ y: [UInt8], for algorithm: SigningAlgorithm) throws(KeyDefect) -> VerificationKey {
    if algorithm == .es384, x.count == 48, y.count == 48,
      let key = try? P384.Signing.PublicKey(rawRepresentation: x + y)
    {
      return VerificationKey(algorithm, .p384(key))
    }
    if algorithm == .es256, x.count == 32, y.count == 32,
      let key = try? P256.Signing.PublicKey(rawRepresentation: x + y)
    {
      return VerificationKey(algorithm, .p256(key))
    }
    throw KeyDefect("its 'x' and 'y' are not a point on the curve of \(algorithm.rawValue)")
  }

  /// Creates an Ed25519 key for EdDSA.
  static func ed25519(_ x: [UInt8]) throws(KeyDefect) -> VerificationKey {
    guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: x) else {
      throw KeyDefect("its 'x' is not an Ed25519 key")
    }
    return VerificationKey(.edDSA, .ed25519(key))
  }

  /// Returns true if a signature is valid for these bytes with this key.
  func verifies(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
    switch material {
    case .secret(let key):
      switch algorithm {
      case .hs384: HMAC<SHA384>.isValidAuthenticationCode(signature, authenticating: bytes, using: key)
      case .hs512: HMAC<SHA512>.isValidAuthenticationCode(signature, authenticating: bytes, using: key)
      default: HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: bytes, using: key)
      }
    case .rsa(let key):
      key.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: signature), for: SHA256.hash(data: bytes),
        padding: algorithm == .ps256 ? .PSS : .insecurePKCS1v1_5)
    case .p256(let key):
      (try? P256.Signing.ECDSASignature(rawRepresentation: signature)).map { key.isValidSignature($0, for: bytes) }
        ?? false
    case .p384(let key):
      (try? P384.Signing.ECDSASignature(rawRepresentation: signature)).map { key.isValidSignature($0, for: bytes) }
        ?? false
    case .ed25519(let key):
      key.isValidSignature(signature, for: bytes)
    }
  }

  /// Signs bytes with a shared secret; returns nil for other keys, whose private parts are never read.
  func signature(of bytes: [UInt8]) -> [UInt8]? {
    guard case .secret(let key) = material else { return nil }
    return switch algorithm {
    case .hs384: Array(HMAC<SHA384>.authenticationCode(for: bytes, using: key))
    case .hs512: Array(HMAC<SHA512>.authenticationCode(for: bytes, using: key))
    default: Array(HMAC<SHA256>.authenticationCode(for: bytes, using: key))
    }
  }
}

/// The reason why a key is refused, as the end of a sentence about it.
package struct KeyDefect: Error, Hashable, Sendable, CustomStringConvertible {
  /// The reason, in words. It reveals nothing of the key except the names and lengths of its members.
  package let description: String

  init(_ description: String) { self.description = description }
}

/// The algorithms that a token may be signed with (RFC 7518 §3.1, RFC 8037 §3.1). `none` is not supported.
package enum SigningAlgorithm: String, CaseIterable, Sendable {
  case hs256 = "HS256"
  case hs384 = "HS384"
  case hs512 = "HS512"
  case rs256 = "RS256"
  case ps256 = "PS256"
  case es256 = "ES256"
  case es384 = "ES384"
  case edDSA = "EdDSA"

  /// The names of all algorithms, for messages.
  static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
