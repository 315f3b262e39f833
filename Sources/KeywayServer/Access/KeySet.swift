import Crypto
import Foundation
package import KeyValueModel

/// The keys that tokens are verified with: a JWK Set (RFC 7517 §5).
package struct KeySet: Sendable {
  /// A key with its name.
  struct Entry: Sendable {
    let id: String?
    let key: VerificationKey
    let mark: KeyMark
  }

  /// In the order of the file.
  let entries: [Entry]

  /// The number of keys.
  package var count: Int { entries.count }
  /// True if the set lets its holder sign tokens: one of its keys is a shared secret, or comes with its private part,
  /// which is not used.
  package let holdsSecret: Bool

  /// Reads a JWK Set. Throws a `KeyDefect` if it is malformed, has a key without a listed `alg`, a key whose type is
  /// not that of its `alg`, a weak key, or two keys with one `kid`. Under a set without keys, no token is valid.
  package init(json bytes: [UInt8]) throws(KeyDefect) {
    let value: Value
    do {
      value = try Value(json: bytes, depthLimit: 16)
    } catch {
      throw KeyDefect("it is not valid JSON: \(error)")
    }
    guard case .object(let set) = value, case .array(let keys)? = set["keys"] else {
      throw KeyDefect("it is not a JWK Set, which is an object with an array 'keys' (RFC 7517 §5)")
    }
    holdsSecret = keys.contains { key in
      if case .object(let key) = key { key["k"] != nil || key["d"] != nil } else { false }
    }
    var entries: [Entry] = []
    for (index, key) in keys.enumerated() {
      do throws(KeyDefect) {
        let entry = try Self.entry(key)
        if let id = entry.id, entries.contains(where: { $0.id == id }) {
          throw KeyDefect("another key has the same 'kid'")
        }
        entries.append(entry)
      } catch {
        throw KeyDefect("keys[\(index)] is refused: \(error)")
      }
    }
    self.entries = entries
  }

  /// A set without keys, under which no token is valid.
  static let empty = KeySet(entries: [], holdsSecret: false)

  private init(entries: [Entry], holdsSecret: Bool) { (self.entries, self.holdsSecret) = (entries, holdsSecret) }

  /// Returns true if a key of another set is also in this one, under the same name.
  package func has(_ key: KeyMark) -> Bool { entries.contains { $0.mark == key } }

  /// Returns the only key that a token's header can mean, or nil if that is not clear: the key with its `kid`, whose
  /// algorithm must be that of the header; without a `kid`, the only key of the algorithm.
  func entry(named id: String?, for algorithm: SigningAlgorithm) -> Entry? {
    if let id { return entries.first { $0.id == id && $0.key.algorithm == algorithm } }
    let candidates = entries.filter { $0.key.algorithm == algorithm }
    return candidates.count == 1 ? candidates[0] : nil
  }

  private static func entry(_ value: Value) throws(KeyDefect) -> Entry {
    guard case .object(let key) = value else { throw KeyDefect("it is not an object") }
    guard let name = key["alg"]?.asString, let algorithm = SigningAlgorithm(rawValue: name) else {
      throw KeyDefect("its 'alg' is not one of \(SigningAlgorithm.names)")
    }
    if let use = key["use"], use.asString != "sig" { throw KeyDefect("its 'use' is not 'sig'") }
    var id: String?
    if let kid = key["kid"] {
      guard let text = kid.asString else { throw KeyDefect("its 'kid' is not a string") }
      id = text
    }
    return Entry(
      id: id, key: try verificationKey(key, algorithm),
      mark: KeyMark(digest: Array(SHA256.hash(data: Array(value.json.utf8)))))
  }

  private static func verificationKey(
    _ key: JSONObject, _ algorithm: SigningAlgorithm
  ) throws(KeyDefect) -> VerificationKey {
    func bytes(_ name: String) throws(KeyDefect) -> [UInt8] {
      guard let bytes = key[name]?.asString.flatMap(Base64URL.bytes), !bytes.isEmpty else {
        throw KeyDefect("its '\(name)' is not base64url text")
      }
      return bytes
    }
    func require(_ type: String, _ curve: String? = nil) throws(KeyDefect) {
      guard key["kty"]?.asString == type, key["crv"]?.asString == curve else {
        throw KeyDefect("\(algorithm.rawValue) requires 'kty' \(type)" + (curve.map { " and 'crv' \($0)" } ?? ""))
      }
    }
    switch algorithm {
    case .hs256, .hs384, .hs512:
      try require("oct")
      return try .secret(try bytes("k"), for: algorithm)
    case .rs256, .ps256:
      try require("RSA")
      return try .rsa(modulus: try bytes("n"), exponent: try bytes("e"), for: algorithm)
    case .es256, .es384:
      try require("EC", algorithm == .es256 ? "P-256" : "P-384")
      return try .point(try bytes("x"), try bytes("y"), for: algorithm)
    case .edDSA:
      try require("OKP", "Ed25519")
      return try .ed25519(try bytes("x"))
    }
  }
}

/// The digest of a key, which tells it from every other key and reveals nothing of it.
package struct KeyMark: Hashable, Sendable {
  /// The length of the digest in bytes.
  package static let byteCount = 32

  /// The SHA-256 of the key as the set has it.
  package let digest: [UInt8]
}

/// Files whose content only their owner should read.
package enum SecretFile {
  /// Returns a warning for the operator if the group or others can read or write the file that a setting names, or nil
  /// if they cannot or the file does not exist. It is only a warning: some systems hand secrets to programs in files
  /// that a group can read.
  package static func warning(of path: String, named setting: String) -> String? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & 0o066 != 0 else { return nil }
    let mode = String(status.st_mode & 0o777, radix: 8)
    let isPlain = path.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || "0123456789/._-".unicodeScalars.contains($0)
    }
    let argument = isPlain ? path : "'\(path.replacing("'", with: #"'\''"#))'"
    return
      "\(setting): others than the owner can read or change the secret in '\(path)' (mode \(mode)); "
      + "run chmod 600 \(argument)"
  }
}

/// A shared secret that makes tokens as well as it verifies them: for development, and for services that trust each
/// other.
package struct DevelopmentKey: Sendable {
  private let id: String?
  private let key: VerificationKey

  /// Returns a JWK Set with one new key for HS256, as JSON text with a newline.
  package static func makeSet() -> String {
    var random = SystemRandomNumberGenerator()
    func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: .min ... .max, using: &random) } }
    let key: JSONObject = [
      "kty": .string("oct"), "alg": .string(SigningAlgorithm.hs256.rawValue), "use": .string("sig"),
      "kid": .string(Base64URL.text(of: bytes(9))), "k": .string(Base64URL.text(of: bytes(32))),
    ]
    return Value.object(["keys": .array([.object(key)])]).json + "\n"
  }

  /// Takes the first key of a set that can sign, or returns nil if all keys are public.
  package init?(of keys: KeySet) {
    guard let entry = keys.entries.first(where: { $0.key.signature(of: []) != nil }) else { return nil }
    (id, key) = (entry.id, entry.key)
  }

  /// Returns a token with these claims.
  package func token(_ claims: JSONObject) -> String {
    var header: JSONObject = ["alg": .string(key.algorithm.rawValue), "typ": .string("JWT")]
    if let id { header["kid"] = .string(id) }
    let signed = [header, claims].map { Base64URL.text(of: Value.object($0).json.utf8) }.joined(separator: ".")
    return signed + "." + Base64URL.text(of: key.signature(of: Array(signed.utf8)) ?? [])
  }
}
