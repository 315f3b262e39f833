package import HTTPServer
import HTTPTypes

/// What makes two requests the same: everything of a write that its outcome depends on.
///
/// It is the request itself, not a digest of it: the response to one request must never be given to another, and
/// digests can collide. Its bytes count against the memory's limit.
package struct RequestFingerprint: Equatable, Sendable {
  /// The header fields that a write heeds.
  private static let names: [HTTPField.Name] = [.contentType, .ifMatch, .ifNoneMatch, .keywayWriter]

  /// How many bytes it holds.
  package var byteCount: Int { bytes.count }

  let bytes: [UInt8]

  /// The fingerprint of a request that arrived.
  package init(_ request: borrowing Request) {
    var fields: [HTTPField] = []
    for name in Self.names {
      if let value = request.header(name) { fields.append(HTTPField(name: name, value: value)) }
    }
    let head = "\(request.method.rawValue) \(request.target)\n"
    self.init(head: head + fields.map { "\($0.name.rawName): \($0.value)\n" }.joined() + "\n", body: request.body())
  }

  /// A fingerprint that was written down.
  init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// A head, whose end can be told from the body, and a body.
  package init(head: String, body: [UInt8]) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(head.utf8.count + body.count)
    bytes.append(contentsOf: head.utf8)
    bytes.append(contentsOf: body)
    self.bytes = bytes
  }
}
