import Crypto
package import HTTPServer
import HTTPTypes
import Support

/// A request that is applied once, however often it is sent.
struct IdempotentRequest: Sendable {
  /// The key that the client gave it.
  let key: IdempotencyKey
  /// The fingerprint of the request, so that its response is never given to another request with the same key.
  let fingerprint: RequestFingerprint
  /// The viewer that the response is made for; nil if no rules apply to the requester.
  var viewer: ViewerMark?
}

/// The key of an `Idempotency-Key` header: the client's name for a request that it may have to send again. The same
/// text from two identities is two keys.
package struct IdempotencyKey: Hashable, Sendable {
  /// The maximum number of characters in a key.
  package static let maximumLength = 255

  /// The characters, without the quotation marks and backslashes of the header.
  package let text: String
  /// The identity that the key belongs to; nil if it is not known.
  package let owner: IdentityMark?

  /// Reads the key from the text of a header, or throws `malformed-query`. It is a String of Structured Fields (RFC
  /// 9651 §3.3.3), as the draft requires, or bare, as many clients send it: `"a-1"` and `a-1` are one key.
  package init(_ header: String, of owner: IdentityMark? = nil) throws(Problem) {
    let field = header.trimmingSpaces()
    let text = field.hasPrefix("\"") ? Self.unquoted(field) : field
    guard let text, !text.contains("\"") || field.hasPrefix("\"") else {
      throw Problem(.malformedQuery, "Idempotency-Key is not a valid quoted string")
    }
    guard (1...Self.maximumLength).contains(text.utf8.count), text.isVisibleASCII else {
      throw Problem(
        .malformedQuery, "Idempotency-Key must be one key of 1 to \(Self.maximumLength) visible ASCII characters")
    }
    self.text = text
    self.owner = owner
  }

  /// Returns the text between the quotation marks, or nil if these, or what is escaped, are not valid.
  private static func unquoted(_ field: String) -> String? {
    var rest = field.utf8.dropFirst()
    var bytes: [UInt8] = []
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""): return rest.isEmpty ? String(decoding: bytes, as: UTF8.self) : nil
      case UInt8(ascii: "\\"):
        guard let escaped = rest.popFirst(), escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else {
          return nil
        }
        bytes.append(escaped)
      default: bytes.append(byte)
      }
    }
    return nil
  }
}

/// A digest of everything in a write that its outcome depends on. Requests with the same digest are the same.
///
/// It is a SHA-256, for which no collision is known: the response to one request is never given to another. It is
/// computed on the thread of the request, and has the same length for every body.
package struct RequestFingerprint: Hashable, Sendable {
  /// The header fields that a write depends on.
  private static let names: [HTTPField.Name] = [.contentType, .ifMatch, .ifNoneMatch, .keywayWriter, .keywayLifetime]

  /// The length of the digest in bytes.
  package static let byteCount = SHA256.byteCount

  private let digest: SIMD4<UInt64>

  /// Creates the fingerprint of a request that arrived.
  package init(_ request: borrowing Request) {
    var head = "\(request.method.rawValue) \(request.target)\n"
    for name in Self.names {
      if let value = request.header(name) { head += "\(name.rawName): \(value)\n" }
    }
    head += "\n"
    self.init(head: head, body: request.body())
  }

  /// Creates the fingerprint of a head, whose end can be told from the body, and a body.
  package init(head: String, body: [UInt8]) {
    var hash = SHA256()
    var head = head
    head.withUTF8 { hash.update(UnsafeRawBufferPointer($0)) }
    hash.update(body)
    self.init(hash)
  }

  /// Creates the fingerprint of a head and a body that were kept as they were sent, one after the other.
  init(ofRequest bytes: [UInt8]) {
    var hash = SHA256()
    hash.update(bytes)
    self.init(hash)
  }

  private init(_ hash: SHA256) {
    digest = hash.finalize().withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  /// Reads a stored fingerprint, or returns nil if there are more or fewer bytes.
  init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    digest = Array(bytes).withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  /// Appends the bytes of the digest.
  func append(to bytes: inout [UInt8]) {
    withUnsafeBytes(of: digest) { bytes.append(contentsOf: $0) }
  }
}
