import Crypto
import HTTPServer
import HTTPTypes
import Support

/// A forwarded write: its name, and what that stands for.
///
/// Nobody can guess a name, but names pass through nodes, records and memory. So an answer that is kept under one is
/// given to the same request alone.
struct BoundWrite: Hashable, Sendable {
  /// A digest of who asks (`sub`), the method, the target and the body of a request. It is the first half of a SHA-256,
  /// and has the same length for every body.
  struct Binding: Hashable, Sendable {
    /// The number of bytes.
    static let byteCount = HalfDigest.byteCount

    private let digest: HalfDigest

    /// Creates the binding of a request of someone with this `sub`; nil for someone without a token.
    init(_ request: borrowing Request, subject: String?) {
      self.init(
        subject: subject, method: request.method.rawValue, target: NodeRequest.originForm(of: request.target),
        body: request.body())
    }

    /// Creates the binding of a request of these parts.
    init(subject: String?, method: String, target: String, body: [UInt8]) {
      var hash = SHA256()
      // A method and a target have no line break, and the length says where a sub ends.
      let asker = subject.map { "\($0.utf8.count) \($0)" } ?? "-"
      var head = "\(asker)\n\(method)\n\(target)\n"
      head.withUTF8 { hash.update(UnsafeRawBufferPointer($0)) }
      hash.update(body)
      digest = HalfDigest(hash)
    }

    /// Creates a binding that was written down; nil if there are more or fewer bytes.
    init?(bytes: some Collection<UInt8>) {
      guard let digest = HalfDigest(bytes: bytes) else { return nil }
      self.digest = digest
    }

    /// Adds its bytes to others.
    func append(to bytes: inout [UInt8]) { digest.append(to: &bytes) }
  }

  /// The name.
  let id: PassedWrite.ID
  /// The request that it stands for.
  let binding: Binding
}
