package import HTTPServer
package import HTTPTypes
package import KeyValueModel

/// The reason why a request fails, and its response (RFC 9457). The only error that handlers throw.
package struct Problem: Error, Sendable {
  /// The kind of problem.
  package let code: ProblemCode
  /// The explanation of this occurrence, as a sentence.
  package let detail: String
  /// The status of the response, usually the status of the code.
  package let status: HTTPResponse.Status
  private var object: String?
  private var keyPath: String?
  private var operation: Int?
  private var fields: FieldSection = [:]

  /// The maximum number of characters of a detail: enough for every sentence with what it quotes, unless the quoted
  /// text is long.
  package static let detailLength = 500
  /// The maximum number of characters of an object's name or a key path.
  package static let placeLength = 300

  /// Creates a problem. The middle of a long detail is left out, since it may quote what the client sent. `status`
  /// replaces the status of the code: a limit reached by one client is 429, the same limit reached by all clients
  /// together is 503.
  package init(
    _ code: ProblemCode, _ detail: String, object: Reference? = nil, keyPath: String? = nil,
    status: HTTPResponse.Status? = nil
  ) {
    self.code = code
    self.status = status ?? code.status
    self.detail = detail.shortened(to: Self.detailLength)
    self.object = object?.text
    self.keyPath = keyPath?.shortened(to: Self.placeLength)
    let passes =
      self.status == .tooManyRequests || self.status == .serviceUnavailable || code == .idempotencyKeyInUse
    if passes { fields[.retryAfter] = "1" }
  }

  /// Creates the problem of an error of the model.
  package init(_ error: ModelError) {
    self.init(ProblemCode(rawValue: error.code.rawValue) ?? .internalError, error.detail)
    object = error.object?.shortened(to: Self.placeLength)
    keyPath = error.keyPath?.shortened(to: Self.placeLength)
    operation = error.operation
  }

  /// Creates the problem of refused memory.
  package init(_ refusal: MemoryRefusal) {
    switch refusal {
    case .clientShare:
      self.init(.overloaded, "the server holds as much for this client as memory.clientBytes allows; try again")
    case .total: self.init(.overloaded, "the server holds as much for its clients as memory.bytes allows; try again")
    }
  }

  /// Returns the result of `body`, and throws its error as a problem.
  package static func translating<Result>(
    _ body: () throws(ModelError) -> Result
  ) throws(Problem) -> Result {
    do throws(ModelError) {
      return try body()
    } catch {
      throw Problem(error)
    }
  }

  /// Returns the value of an expression, and throws its error as a problem.
  package static func translating<Result>(
    _ expression: @autoclosure () throws(ModelError) -> Result
  ) throws(Problem) -> Result {
    try translating(expression)
  }

  /// Returns the problem with a header for the client: `Allow`, `Accept`, the present `ETag`.
  package func with(_ name: HTTPField.Name, _ value: String?) -> Problem {
    var problem = self
    problem.fields[name] = value
    return problem
  }

  /// Returns the problem with the cursor of the state that the request was evaluated in (the specification, section
  /// 13). With nil, returns it unchanged.
  func judged(by cursor: Cursor?) -> Problem { cursor.map { with(.keywayCursor, $0.description) } ?? self }

  /// The media type of a response with a problem.
  static let mediaType = "application/problem+json"

  /// The response: `application/problem+json` with type, title, status, detail, and the object, key path and operation
  /// that are affected.
  package var response: Response {
    var body: JSONObject = [
      "type": .string("/v1/problems/\(code.rawValue)"),
      "title": .string(code.explanation),
      "status": .integer(Int64(status.code)),
      "detail": .string(detail),
    ]
    body["object"] = object.map(Value.string)
    body["keyPath"] = keyPath.map(Value.string)
    body["operation"] = operation.map { .integer(Int64($0)) }
    var response = Response.json(body)
    response.status = status
    response.reason = code.rawValue
    response.fields[.contentType] = Self.mediaType
    response.fields.append(contentsOf: fields)
    return response
  }
}

extension String {
  /// Returns the text. If it has more than `length` Unicode scalars, returns its beginning and its end with a note
  /// between them on how much is left out, since the error may be at either end.
  package func shortened(to length: Int) -> String {
    // Every scalar has at least one byte, so that a short text is recognized by its byte count.
    guard utf8.count > length, unicodeScalars.count > length else { return self }
    let left = unicodeScalars.count - length
    let note = " …(\(left) characters left out)… "
    let end = length / 3
    return String(unicodeScalars.prefix(length - end)) + note + String(unicodeScalars.suffix(end))
  }
}
