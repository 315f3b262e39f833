import HTTPServer
import HTTPTypes

/// The attachment to the commit of a write that a node has forwarded: its name, what the name stands for, and the
/// response, in which a client's `Idempotency-Key` stands too, if there is one.
///
/// A byte that names the form, the name, the binding, and a `StoredResponse`. Records of earlier versions have another
/// form, without the binding.
struct PassedAttachment {
  let id: PassedWrite.ID
  /// The request that the name stands for; nil in a record of an earlier version.
  let binding: BoundWrite.Binding?
  let stored: StoredResponse

  /// The first byte of one without a binding. `StoredResponse` and `EndedSession` have the other forms up to 7.
  private static let unboundForm: UInt8 = 3
  /// The first byte of one with a binding.
  private static let form: UInt8 = 16
  /// A longer body is not kept: who asks what became of the write gets the rest of the response.
  static let bodyBytes = 4_096

  /// Reads what was written down in one of these forms; nil if it is in another.
  init?(_ bytes: [UInt8]) {
    guard let (id, binding) = Self.name(in: bytes), let stored = StoredResponse(Self.rest(of: bytes)) else {
      return nil
    }
    (self.id, self.binding, self.stored) = (id, binding, stored)
  }

  /// Creates what is kept of a response to a write, which may have a client's key.
  init(_ write: BoundWrite, _ request: IdempotentRequest?, _ response: Response) {
    var response = response
    if request == nil, response.body.count > Self.bodyBytes {
      response.body = []
      response.fields[.contentType] = nil
    }
    (id, binding) = (write.id, write.binding)
    stored = StoredResponse(request: request, response: response)
  }

  /// The number of bytes before the response in an attachment that begins with this byte; nil in other forms.
  private static func headBytes(_ form: UInt8?) -> Int? {
    switch form {
    case Self.form: 1 + PassedWrite.ID.byteCount + BoundWrite.Binding.byteCount
    case unboundForm: 1 + PassedWrite.ID.byteCount
    default: nil
    }
  }

  /// Returns the name in an attachment, and what it stands for; nil if the attachment is of another form.
  static func name(in bytes: [UInt8]) -> (id: PassedWrite.ID, binding: BoundWrite.Binding?)? {
    guard let headBytes = headBytes(bytes.first), bytes.count >= headBytes,
      let id = PassedWrite.ID(bytes: bytes[1..<headBytes])
    else { return nil }
    return (id, BoundWrite.Binding(bytes: bytes[(1 + PassedWrite.ID.byteCount)..<headBytes]))
  }

  /// Returns false if an attachment of any form has no client's key, like most of those of nodes.
  static func mayHaveKey(_ bytes: [UInt8]) -> Bool {
    let place = headBytes(bytes.first) ?? 0
    return place < bytes.count && StoredResponse.mayHaveKey(bytes[place])
  }

  /// Returns what an attachment has that does not concern nodes: the response with a client's key, if there is one.
  static func rest(of bytes: [UInt8]) -> [UInt8] {
    headBytes(bytes.first).map { Array(bytes.dropFirst($0)) } ?? bytes
  }

  /// The attachment as it is kept.
  var bytes: [UInt8] {
    var bytes = [binding == nil ? Self.unboundForm : Self.form]
    id.append(to: &bytes)
    binding?.append(to: &bytes)
    return bytes + stored.bytes
  }
}
