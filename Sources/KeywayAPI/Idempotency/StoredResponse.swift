import HTTPServer
import HTTPTypes
import KeyValueModel

/// The response to a request with an `Idempotency-Key`, as it is kept with its commit: a retry after a restart finds it
/// exactly where the commit is found too.
struct StoredResponse {
  let request: IdempotentRequest
  let response: Response

  init(request: IdempotentRequest, response: Response) {
    self.request = request
    self.response = response
  }

  /// The response of a text; nil where that is none.
  init?(_ text: [UInt8]) {
    guard let value = try? Value(json: text, depthLimit: 4), case .array(let parts) = value, parts.count == 5,
      case .string(let key) = parts[0], let key = try? IdempotencyKey(key),
      case .string(let fingerprint) = parts[1], let fingerprint = Self.bytes(of: fingerprint),
      case .integer(let status) = parts[2], (100...599).contains(status),
      case .array(let fields) = parts[3], case .string(let body) = parts[4], let body = Self.bytes(of: body)
    else { return nil }
    var head: HTTPFields = [:]
    for field in fields {
      guard case .array(let pair) = field, pair.count == 2, case .string(let name) = pair[0],
        case .string(let content) = pair[1], let name = HTTPField.Name(name)
      else { return nil }
      head.append(HTTPField(name: name, value: content))
    }
    request = IdempotentRequest(key: key, fingerprint: RequestFingerprint(bytes: fingerprint))
    response = Response(status: HTTPResponse.Status(code: Int(status)), fields: head, body: body)
  }

  /// The response as text: JSON without a line break.
  var text: [UInt8] {
    let fields = response.fields.map { Value.array([.string($0.name.rawName), .string($0.value)]) }
    var text: [UInt8] = []
    Value.array([
      .string(request.key.text), .string(Self.string(of: request.fingerprint.bytes)),
      .integer(Int64(response.status.code)),
      .array(fields), .string(Self.string(of: response.body)),
    ]).appendJSON(to: &text)
    return text
  }

  /// Bytes as the characters of the same numbers, which leaves text readable.
  private static func string(of bytes: [UInt8]) -> String {
    String(String.UnicodeScalarView(bytes.lazy.map { Unicode.Scalar($0) }))
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
