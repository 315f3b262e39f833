package import HTTPServer
import HTTPTypes
import KeyValueModel

/// The response to a request with an `Idempotency-Key`, or to a write that a node has forwarded, as it is stored with
/// its commit: a retry after a restart finds it exactly if the commit is found too.
///
/// It is encoded on the writer's thread, so its form costs little more than copying: a byte that names the form; the
/// mark of the key's owner and that of the viewer for whom the response is made, if the form says so; the key after its
/// length and the digest of the request, if there is a key; the status; the fields after their number, each name and
/// value after its length; and the body, which is the rest. Lengths and the status are numbers of four bytes, the least
/// significant first.
package struct StoredResponse {
  /// The client's key with the request that it belongs to; nil if the client sent none.
  let request: IdempotentRequest?
  package let response: Response

  /// The first byte of a response whose key belongs to no identity. The earlier form is JSON, and begins with `[`.
  private static let form: UInt8 = 1
  /// The first byte of a response whose key belongs to an identity.
  private static let ownedForm: UInt8 = 2
  /// The first byte of a response without a key. 3 and 16 are forms of `PassedAttachment`.
  private static let keylessForm: UInt8 = 4
  /// The first byte of a response whose key belongs to an identity, and which was made for a viewer.
  private static let viewedForm: UInt8 = 5
  /// The first byte of a response whose key belongs to no identity, and which was made for a viewer.
  private static let strangersForm: UInt8 = 6
  /// The forms of sessions and accounts: see `SessionChange` and `AccountChange`.
  private static let accessForms: ClosedRange<UInt8> = 7...9
  private static let forms = [form, ownedForm, keylessForm, viewedForm, strangersForm]

  /// Returns true if a response that begins with this byte may have a key.
  static func mayHaveKey(_ form: UInt8) -> Bool {
    form != keylessForm && !accessForms.contains(form)
  }

  init(request: IdempotentRequest?, response: Response) {
    self.request = request
    self.response = response
  }

  /// Reads a response that was stored in this form or the earlier one, or returns nil if it is in neither.
  init?(_ bytes: [UInt8]) {
    guard let form = bytes.first, Self.forms.contains(form) else {
      self.init(json: bytes)
      return
    }
    var rest = bytes.dropFirst()
    var request: IdempotentRequest?
    if form != Self.keylessForm {
      guard let found = Self.request(&rest, form) else { return nil }
      request = found
    }
    guard let status = Self.number(&rest), (100...599).contains(status), let count = Self.number(&rest) else {
      return nil
    }
    var head: FieldSection = [:]
    for _ in 0..<count {
      guard let name = Self.text(&rest), let name = HTTPField.Name(name), let value = Self.text(&rest) else {
        return nil
      }
      head.append(name, value)
    }
    self.init(
      request: request,
      response: Response(status: HTTPResponse.Status(code: status), fields: head, body: Array(rest)))
  }

  private static func request(_ rest: inout ArraySlice<UInt8>, _ form: UInt8) -> IdempotentRequest? {
    var owner: IdentityMark?
    if form == ownedForm || form == viewedForm {
      guard let mark = IdentityMark(bytes: rest.prefix(IdentityMark.byteCount)) else { return nil }
      owner = mark
      rest = rest.dropFirst(IdentityMark.byteCount)
    }
    var viewer: ViewerMark?
    if form == viewedForm || form == strangersForm {
      guard let mark = ViewerMark(bytes: rest.prefix(ViewerMark.byteCount)) else { return nil }
      viewer = mark
      rest = rest.dropFirst(ViewerMark.byteCount)
    }
    guard let key = text(&rest), let key = try? IdempotencyKey(key, of: owner),
      rest.count >= RequestFingerprint.byteCount,
      let fingerprint = RequestFingerprint(bytes: rest.prefix(RequestFingerprint.byteCount))
    else { return nil }
    rest = rest.dropFirst(RequestFingerprint.byteCount)
    return IdempotentRequest(key: key, fingerprint: fingerprint, viewer: viewer)
  }

  /// The response in the form in which it is stored.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(512 + response.body.count)
    let (owner, viewer) = (request?.key.owner, request?.viewer)
    if request == nil {
      bytes.append(Self.keylessForm)
    } else if viewer == nil {
      bytes.append(owner == nil ? Self.form : Self.ownedForm)
    } else {
      bytes.append(owner == nil ? Self.strangersForm : Self.viewedForm)
    }
    owner?.append(to: &bytes)
    viewer?.append(to: &bytes)
    if let request {
      Self.append(request.key.text, to: &bytes)
      request.fingerprint.append(to: &bytes)
    }
    Self.append(response.status.code, to: &bytes)
    let fields = response.fields.lines
    Self.append(fields.count, to: &bytes)
    for field in fields {
      Self.append(field.name, to: &bytes)
      Self.append(field.value, to: &bytes)
    }
    bytes.append(contentsOf: response.body)
    return bytes
  }

  private static func append(_ number: Int, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: UInt32(number).littleEndian) { bytes.append(contentsOf: $0) }
  }

  private static func append(_ text: String, to bytes: inout [UInt8]) {
    append(text.utf8.count, to: &bytes)
    bytes.append(contentsOf: text.utf8)
  }

  private static func number(_ rest: inout ArraySlice<UInt8>) -> Int? {
    guard rest.count >= 4 else { return nil }
    let number = rest.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self)) }
    rest = rest.dropFirst(4)
    return Int(number)
  }

  private static func text(_ rest: inout ArraySlice<UInt8>) -> String? {
    guard let length = number(&rest), length <= rest.count else { return nil }
    let text = String(validating: rest.prefix(length), as: UTF8.self)
    rest = rest.dropFirst(length)
    return text
  }

  // MARK: The form before

  /// Reads the response in a JSON array: key, request, status, fields and body. The request and the body have a
  /// character for each byte.
  private init?(json text: [UInt8]) {
    guard let value = try? Value(json: text, depthLimit: 4), case .array(let parts) = value, parts.count == 5,
      case .string(let key) = parts[0], let key = try? IdempotencyKey(key),
      case .string(let sent) = parts[1], let sent = Self.bytes(of: sent),
      case .integer(let status) = parts[2], (100...599).contains(status),
      case .array(let fields) = parts[3], case .string(let body) = parts[4], let body = Self.bytes(of: body)
    else { return nil }
    var head: FieldSection = [:]
    for field in fields {
      guard case .array(let pair) = field, pair.count == 2, case .string(let name) = pair[0],
        case .string(let content) = pair[1], let name = HTTPField.Name(name)
      else { return nil }
      head.append(name, content)
    }
    self.init(
      request: IdempotentRequest(key: key, fingerprint: RequestFingerprint(ofRequest: sent)),
      response: Response(status: HTTPResponse.Status(code: Int(status)), fields: head, body: body))
  }

  private static func bytes(of text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    for scalar in text.unicodeScalars {
      guard let byte = UInt8(exactly: scalar.value) else { return nil }
      bytes.append(byte)
    }
    return bytes
  }
}
