import HTTPServer
import HTTPTypes

/// What is kept with the commit of a write that a node has passed on: its id, and the response, in which a client's
/// `Idempotency-Key` stands too, where there is one.
///
/// A byte that names the form, the id, and a `StoredResponse`.
struct PassedAttachment {
  let id: PassedWrite.ID
  let stored: StoredResponse

  /// What one begins with. `StoredResponse` has the other forms.
  private static let form: UInt8 = 3
  /// A longer body is not kept: who asks what became of the write gets the rest of the response.
  static let bodyBytes = 4_096

  /// What was written down in this form; nil where it is another.
  init?(_ bytes: [UInt8]) {
    guard let id = Self.id(of: bytes), let stored = StoredResponse(Self.rest(of: bytes)) else { return nil }
    (self.id, self.stored) = (id, stored)
  }

  /// What is kept of a response to a write, which may have a client's key.
  init(id: PassedWrite.ID, _ request: IdempotentRequest?, _ response: Response) {
    var response = response
    if request == nil, response.body.count > Self.bodyBytes {
      response.body = []
      response.fields[.contentType] = nil
    }
    self.id = id
    stored = StoredResponse(request: request, response: response)
  }

  /// The id in an attachment of this form; nil where it is of another.
  static func id(of bytes: [UInt8]) -> PassedWrite.ID? {
    bytes.first == form ? PassedWrite.ID(bytes: bytes.dropFirst()) : nil
  }

  /// Whether an attachment of any form may have a client's key, which most of those of nodes do not.
  static func mayHaveKey(_ bytes: [UInt8]) -> Bool {
    let place = bytes.first == form ? 1 + PassedWrite.ID.byteCount : 0
    return place < bytes.count && StoredResponse.mayHaveKey(bytes[place])
  }

  /// What an attachment has that is of no concern to nodes: the response with a client's key, where there is one.
  static func rest(of bytes: [UInt8]) -> [UInt8] {
    bytes.first == form ? Array(bytes.dropFirst(1 + PassedWrite.ID.byteCount)) : bytes
  }

  /// As it is kept.
  var bytes: [UInt8] {
    var bytes = [Self.form]
    id.append(to: &bytes)
    return bytes + stored.bytes
  }
}
