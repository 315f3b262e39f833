import Crypto
import CryptoExtras
import Foundation

/// The scrypt of a password (RFC 7914), with its salt and its parameters. The password cannot be derived from it, and
/// each guess costs as much time and memory as a sign-in.
package struct PasswordHash: Hashable, Sendable {
  /// The parameters of scrypt, which determine the time and the memory that a hash takes.
  package struct Cost: Hashable, Sendable {
    /// The binary logarithm of the number of blocks, N.
    let logarithm: Int
    /// The size of a block, r.
    let blockSize: Int
    /// The number of independent mixings, p.
    let parallelism: Int

    /// The cost of new hashes: 32 MiB, and three times the time that these take (OWASP, Password Storage).
    package static let standard = Cost(logarithm: 15, blockSize: 8, parallelism: 3)

    /// Creates a cost; nil unless it is one that takes at most 128 MiB.
    init?(checking logarithm: Int, _ blockSize: Int, _ parallelism: Int) {
      guard (1...20).contains(logarithm), (1...32).contains(blockSize), (1...16).contains(parallelism),
        128 * blockSize << logarithm <= 128 << 20
      else { return nil }
      self.init(logarithm: logarithm, blockSize: blockSize, parallelism: parallelism)
    }

    /// Creates a cost of these parameters.
    package init(logarithm: Int, blockSize: Int, parallelism: Int) {
      (self.logarithm, self.blockSize, self.parallelism) = (logarithm, blockSize, parallelism)
    }
  }

  /// The length of a salt in bytes.
  static let saltByteCount = 16
  /// The length of the derived key in bytes.
  static let keyByteCount = 32
  /// The minimum length of a password in characters, each of which is a Unicode scalar (NIST SP 800-63B §5.1.1.2).
  static let leastCharacters = 8

  private let cost: Cost
  private let salt: [UInt8]
  private let key: [UInt8]

  /// Hashes a password with a new salt. Takes long, and 32 MiB of memory. Throws if there is no memory for it.
  init(of password: String, cost: Cost) throws {
    let salt = SymmetricKey(size: SymmetricKeySize(bitCount: 8 * Self.saltByteCount)).withUnsafeBytes { Array($0) }
    (self.cost, self.salt) = (cost, salt)
    key = try Self.derive(password, salt, cost).withUnsafeBytes { Array($0) }
  }

  static func derive(_ password: String, _ salt: [UInt8], _ cost: Cost) throws -> SymmetricKey {
    // The same characters, typed on different systems, are the same password (RFC 8265 §4.2.1).
    let bytes = Array(password.precomposedStringWithCanonicalMapping.utf8)
    return try KDF.Scrypt.deriveKey(
      from: bytes, salt: salt, outputByteCount: keyByteCount, rounds: 1 << cost.logarithm, blockSize: cost.blockSize,
      parallelism: cost.parallelism)
  }

  /// Returns true if a password has enough characters.
  static func isLongEnough(_ password: String) -> Bool {
    password.precomposedStringWithCanonicalMapping.unicodeScalars.count >= leastCharacters
  }

  /// Returns true if this is the hash of a password. Takes as long as hashing one. Throws if there is no memory for it.
  func isHash(of password: String) throws -> Bool {
    // Keys are compared in the same time whatever their bytes are.
    try Self.derive(password, salt, cost) == SymmetricKey(data: key)
  }

  /// Returns a hash of no password: checking a password against it takes as long as for an account.
  static func ofNoPassword(_ cost: Cost) -> PasswordHash {
    PasswordHash(
      cost: cost, salt: [UInt8](repeating: 0, count: saltByteCount), key: [UInt8](repeating: 0, count: keyByteCount))
  }

  private init(cost: Cost, salt: [UInt8], key: [UInt8]) { (self.cost, self.salt, self.key) = (cost, salt, key) }

  // MARK: Stored form

  /// The number of bytes of the stored form.
  static let byteCount = 3 + saltByteCount + keyByteCount

  /// The stored form: the three parameters, a byte each, the salt, and the key.
  var bytes: [UInt8] {
    [UInt8(cost.logarithm), UInt8(cost.blockSize), UInt8(cost.parallelism)] + salt + key
  }

  /// Reads the stored form. Nil if it is cut off, or has parameters that no hash is made with.
  init?(bytes: ArraySlice<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    var rest = bytes
    let parameters = rest.prefix(3).map { Int($0) }
    rest = rest.dropFirst(3)
    guard let cost = Cost(checking: parameters[0], parameters[1], parameters[2]) else { return nil }
    self.init(
      cost: cost, salt: Array(rest.prefix(Self.saltByteCount)), key: Array(rest.dropFirst(Self.saltByteCount)))
  }
}
