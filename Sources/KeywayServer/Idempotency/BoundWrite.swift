import Crypto
package import HTTPServer
import HTTPTypes
import KeyValueModel
import Support

/// The name of a write that nodes forward, as it is kept with the commit that does the write.
///
/// 128 random bits: no client can guess one, and no two nodes make the same.
package struct WriteID: Hashable, Sendable {
  package let high: UInt64
  package let low: UInt64

  /// The number of bytes.
  package static let byteCount = 16

  /// Creates the id of these 128 bits.
  package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Creates a new one.
  package static func random() -> WriteID { WriteID(high: .random(in: .min ... .max), low: .random(in: .min ... .max)) }

  /// Reads the id from the first bytes, or returns nil if there are too few.
  init?(bytes: ArraySlice<UInt8>) {
    guard bytes.count >= Self.byteCount else { return nil }
    self = bytes.withUnsafeBytes { buffer in
      WriteID(
        high: UInt64(bigEndian: buffer.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
  }

  /// Appends the bytes of the id.
  func append(to bytes: inout [UInt8]) {
    for part in [high, low] { withUnsafeBytes(of: part.bigEndian) { bytes.append(contentsOf: $0) } }
  }
}

/// A forwarded write: its name, and the request that the name stands for.
///
/// A name cannot be guessed, but names pass through nodes, records and memory. So a response that is kept under a name
/// is given only to the same request.
package struct BoundWrite: Hashable, Sendable {
  /// A digest of the `sub` of the requester, and of the method, the target and the body of a request. It is the first
  /// half of a SHA-256, and has the same length for every body.
  package struct Binding: Hashable, Sendable {
    /// The number of bytes.
    static let byteCount = HalfDigest.byteCount

    private let digest: HalfDigest

    /// Creates the binding of a request by a requester with this `sub`; nil for one without a token.
    package init(_ request: borrowing Request, subject: String?) {
      self.init(
        subject: subject, method: request.method.rawValue, target: Target.originForm(of: request.target),
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

    /// Reads a stored binding, or returns nil if there are more or fewer bytes.
    init?(bytes: some Collection<UInt8>) {
      guard let digest = HalfDigest(bytes: bytes) else { return nil }
      self.digest = digest
    }

    /// Appends the bytes of the binding.
    func append(to bytes: inout [UInt8]) { digest.append(to: &bytes) }
  }

  /// The name.
  package let id: WriteID
  /// The request that it stands for.
  package let binding: Binding

  /// Creates a name for a request.
  package init(id: WriteID, binding: Binding) { (self.id, self.binding) = (id, binding) }
}

/// The attachment to the commit of a write that a node has forwarded: its name, the request that the name stands for,
/// and the response, which includes a client's `Idempotency-Key` if there is one.
///
/// It consists of a byte that names the form, the name, the binding, and a `StoredResponse`. Records of earlier
/// versions have another form, without the binding.
package struct PassedAttachment {
  package let id: WriteID
  /// The request that the name stands for; nil in a record of an earlier version.
  package let binding: BoundWrite.Binding?
  package let stored: StoredResponse

  /// The first byte of an attachment without a binding. `StoredResponse` and `SessionChange` have the other forms up to
  /// 8.
  private static let unboundForm: UInt8 = 3
  /// The first byte of an attachment with a binding.
  private static let form: UInt8 = 16
  /// The maximum size of a body that is kept, in bytes. Without it, a request for the outcome of the write gets the
  /// rest of the response.
  static let bodyBytes = 4_096

  /// Reads an attachment in one of these forms, or returns nil if it is in another.
  package init?(_ bytes: [UInt8]) {
    guard let (id, binding) = Self.name(in: bytes), let stored = StoredResponse(Self.rest(of: bytes)) else {
      return nil
    }
    (self.id, self.binding, self.stored) = (id, binding, stored)
  }

  /// Creates the attachment of a response to a write, which may have a client's key.
  init(_ write: BoundWrite, _ request: IdempotentRequest?, _ response: Response) {
    var response = response
    if request == nil, response.body.count > Self.bodyBytes {
      response.body = []
      response.fields[.contentType] = nil
    }
    (id, binding) = (write.id, write.binding)
    stored = StoredResponse(request: request, response: response)
  }

  /// Returns the number of bytes before the response in an attachment that begins with this byte, or nil in other
  /// forms.
  private static func headBytes(_ form: UInt8?) -> Int? {
    switch form {
    case Self.form: 1 + WriteID.byteCount + BoundWrite.Binding.byteCount
    case unboundForm: 1 + WriteID.byteCount
    default: nil
    }
  }

  /// Returns the name in an attachment, and what it stands for, or nil if the attachment is of another form.
  package static func name(in bytes: [UInt8]) -> (id: WriteID, binding: BoundWrite.Binding?)? {
    guard let headBytes = headBytes(bytes.first), bytes.count >= headBytes,
      let id = WriteID(bytes: bytes[1..<headBytes])
    else { return nil }
    return (id, BoundWrite.Binding(bytes: bytes[(1 + WriteID.byteCount)..<headBytes]))
  }

  /// Returns false if an attachment of any form has no client's key, as is true of most attachments of nodes.
  static func mayHaveKey(_ bytes: [UInt8]) -> Bool {
    let place = headBytes(bytes.first) ?? 0
    return place < bytes.count && StoredResponse.mayHaveKey(bytes[place])
  }

  /// Returns the part of an attachment that does not concern nodes: the response, with a client's key if there is one.
  static func rest(of bytes: [UInt8]) -> [UInt8] {
    headBytes(bytes.first).map { Array(bytes.dropFirst($0)) } ?? bytes
  }

  /// The attachment in the form in which it is stored.
  var bytes: [UInt8] {
    var bytes = [binding == nil ? Self.unboundForm : Self.form]
    id.append(to: &bytes)
    binding?.append(to: &bytes)
    return bytes + stored.bytes
  }
}
