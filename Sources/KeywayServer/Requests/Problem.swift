package import HTTPServer
package import HTTPTypes
package import KeyValueModel

/// Why a request fails, and the response that says so (RFC 9457). The one error that handlers throw.
package struct Problem: Error, Sendable {
  /// The sort of mistake.
  package let code: ProblemCode
  /// What is wrong with this request, as a sentence.
  package let detail: String
  /// The status of the answer: mostly that of the code.
  package let status: HTTPResponse.Status
  private var object: String?
  private var keyPath: String?
  private var operation: Int?
  private var fields: HTTPFields = [:]

  /// The most characters of a detail: enough for every sentence with what it quotes, unless that is long.
  package static let detailLength = 500
  /// The most characters of an object's name or a key path.
  package static let placeLength = 300

  /// A mistake with its detail, of which the middle is left out where it is long: it may quote what the client sent.
  /// `status` where it is another than the code's: a limit that one client has met is 429, where the same limit of all
  /// clients is 503.
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

  /// A refusal of the model.
  package init(_ error: ModelError) {
    self.init(ProblemCode(rawValue: error.code.rawValue) ?? .internalError, error.detail)
    object = error.object?.shortened(to: Self.placeLength)
    keyPath = error.keyPath?.shortened(to: Self.placeLength)
    operation = error.operation
  }

  /// A refusal of memory.
  package init(_ refusal: MemoryRefusal) {
    switch refusal {
    case .clientShare:
      self.init(.overloaded, "the server holds as much for this client as memory.clientBytes allows; try again")
    case .total: self.init(.overloaded, "the server holds as much for its clients as memory.bytes allows; try again")
    }
  }

  /// What `body` gives, or its refusal as a problem.
  package static func translating<Result>(
    _ body: () throws(ModelError) -> Result
  ) throws(Problem) -> Result {
    do throws(ModelError) {
      return try body()
    } catch {
      throw Problem(error)
    }
  }

  /// What an expression gives, or its refusal by the model as a problem.
  package static func translating<Result>(
    _ expression: @autoclosure () throws(ModelError) -> Result
  ) throws(Problem) -> Result {
    try translating(expression)
  }

  /// The same problem with a header that helps: `Allow`, `Accept`, the present `ETag`.
  package func with(_ name: HTTPField.Name, _ value: String?) -> Problem {
    var problem = self
    problem.fields[name] = value
    return problem
  }

  /// The same problem with the state that the request was judged by (the specification, section 13). With nil it is
  /// as it was.
  func judged(by cursor: Cursor?) -> Problem { cursor.map { with(.keywayCursor, $0.description) } ?? self }

  /// What a response with a problem is of.
  static let mediaType = "application/problem+json"

  /// The response: `application/problem+json` with type, title, status, detail and what it is about.
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
  /// The text, or where it has more Unicode scalars than so many, its beginning and its end with what is left out
  /// between them: what is wrong stands at either.
  package func shortened(to length: Int) -> String {
    // No scalar has fewer bytes than one, so a short text is found without looking at it.
    guard utf8.count > length, unicodeScalars.count > length else { return self }
    let left = unicodeScalars.count - length
    let note = " …(\(left) characters left out)… "
    let end = length / 3
    return String(unicodeScalars.prefix(length - end)) + note + String(unicodeScalars.suffix(end))
  }
}
