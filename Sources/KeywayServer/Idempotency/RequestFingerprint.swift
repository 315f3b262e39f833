import Crypto
package import HTTPServer
import HTTPTypes
import Support

/// What makes two requests the same: a digest of everything of a write that its outcome depends on.
///
/// It is SHA-256, of which no two texts with one digest are known: the response to one request is never given to
/// another. It is worked out on the thread of the request, and has the same length for every body.
package struct RequestFingerprint: Hashable, Sendable {
  /// The header fields that a write heeds.
  private static let names: [HTTPField.Name] = [.contentType, .ifMatch, .ifNoneMatch, .keywayWriter, .keywayLifetime]

  /// How many bytes it has.
  package static let byteCount = SHA256.byteCount

  private let digest: SIMD4<UInt64>

  /// The fingerprint of a request that arrived.
  package init(_ request: borrowing Request) {
    var head = "\(request.method.rawValue) \(request.target)\n"
    for name in Self.names {
      if let value = request.header(name) { head += "\(name.rawName): \(value)\n" }
    }
    head += "\n"
    self.init(head: head, body: request.body())
  }

  /// The fingerprint of a head, whose end can be told from the body, and a body.
  package init(head: String, body: [UInt8]) {
    var hash = SHA256()
    var head = head
    head.withUTF8 { hash.update(UnsafeRawBufferPointer($0)) }
    hash.update(body)
    self.init(hash)
  }

  /// The fingerprint of a head and a body that were kept as they were sent, one behind the other.
  init(ofRequest bytes: [UInt8]) {
    var hash = SHA256()
    hash.update(bytes)
    self.init(hash)
  }

  private init(_ hash: SHA256) {
    digest = hash.finalize().withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  /// A fingerprint that was written down; nil where there are more or fewer bytes.
  init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    digest = Array(bytes).withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  /// Adds the bytes of the digest to others.
  func append(to bytes: inout [UInt8]) {
    withUnsafeBytes(of: digest) { bytes.append(contentsOf: $0) }
  }
}
