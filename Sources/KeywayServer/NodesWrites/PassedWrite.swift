import Crypto
import HTTPServer
import HTTPTypes
import KeyValueModel
import Support

/// What nodes call a write that one of them passes on to another: the field `Keyway-Request` of that request.
///
/// The id is random, made by the node that the client asked, and stands in the attachment of the commit that does the
/// write. So a write that was sent to two nodes, or twice, can be told to be one by every reader of the journal.
struct PassedWrite: Hashable, Sendable {
  /// 128 random bits: no client can guess one, and no two nodes make the same.
  struct ID: Hashable, Sendable {
    let high: UInt64
    let low: UInt64

    /// How many bytes it has.
    static let byteCount = 16

    /// A new one.
    static func random() -> ID { ID(high: .random(in: .min ... .max), low: .random(in: .min ... .max)) }
  }

  /// Who it is.
  let id: ID
  /// The state of the node that made the id, then: the write can have been done by later commits alone.
  let since: Cursor
  /// Whether the node that gets it is to carry it out itself, and to pass it on no further.
  var isFinal = false
  /// Whether it was sent before, and no answer came.
  var isAgain = false

  private static let finalWord = "final"
  private static let againWord = "again"

  /// A new one, made in this state.
  init(since: Cursor) {
    (id, self.since) = (.random(), since)
  }

  /// What a request says; nil where it is a client's own. Throws `malformed-query`.
  init?(of request: borrowing Request) throws(Problem) {
    guard let field = request.header(.keywayRequest) else { return nil }
    try self.init(field)
  }

  /// The value of a field: the id as 32 hexadecimal digits, the state, and the words that hold, each behind a blank.
  /// Throws `malformed-query`.
  init(_ field: String) throws(Problem) {
    let parts = field.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count >= 2, let id = ID(hexadecimal: parts[0]), let since = Cursor(String(parts[1])),
      Set(parts.dropFirst(2)).isSubset(of: [Self.finalWord[...], Self.againWord[...]])
    else { throw Problem(.malformedQuery, "Keyway-Request is what a node says of a write that it passes on") }
    (self.id, self.since) = (id, since)
    isFinal = parts.dropFirst(2).contains { $0 == Self.finalWord }
    isAgain = parts.dropFirst(2).contains { $0 == Self.againWord }
  }

  /// As it is sent.
  var field: String {
    ([id.hexadecimal, since.description] + (isFinal ? [Self.finalWord] : []) + (isAgain ? [Self.againWord] : []))
      .joined(separator: " ")
  }
}

extension PassedWrite.ID {
  /// By bytes: nodes read one for each write, and characters take many times as long.
  fileprivate init?(hexadecimal text: Substring) {
    guard text.utf8.count == 2 * Self.byteCount else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for byte in text.utf8 {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: return nil
      }
      (high, low) = (high << 4 | low >> 60, low << 4 | UInt64(digit))
    }
    self.init(high: high, low: low)
  }

  fileprivate var hexadecimal: String { high.padded(to: 16, radix: 16) + low.padded(to: 16, radix: 16) }

  /// The id in the first bytes; nil where there are too few.
  init?(bytes: ArraySlice<UInt8>) {
    guard bytes.count >= Self.byteCount else { return nil }
    self = bytes.withUnsafeBytes { buffer in
      PassedWrite.ID(
        high: UInt64(bigEndian: buffer.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
  }

  /// Adds its bytes to others.
  func append(to bytes: inout [UInt8]) {
    for part in [high, low] { withUnsafeBytes(of: part.bigEndian) { bytes.append(contentsOf: $0) } }
  }
}

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

  /// The first byte of one without a binding. `StoredResponse` and `SessionChange` have the other forms up to 8.
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
