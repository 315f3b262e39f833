package import HTTPServer
package import HTTPTypes
package import KeyValueModel

/// Why a request fails, and the response that says so (RFC 9457). The one error that handlers throw.
package struct Problem: Error, Sendable {
  /// The sort of mistake.
  package let code: ProblemCode
  /// What is wrong with this request, as a sentence.
  package let detail: String
  private var object: String?
  private var keyPath: String?
  private var operation: Int?
  private var fields: HTTPFields = [:]

  /// A mistake with its detail.
  package init(_ code: ProblemCode, _ detail: String, object: Reference? = nil, keyPath: String? = nil) {
    self.code = code
    self.detail = detail
    self.object = object?.text
    self.keyPath = keyPath
    let passes = code.status == .tooManyRequests || code.status == .serviceUnavailable || code == .idempotencyKeyInUse
    if passes { fields[.retryAfter] = "1" }
  }

  /// A refusal of the model.
  package init(_ error: ModelError) {
    self.init(ProblemCode(rawValue: error.code.rawValue) ?? .internalError, error.detail)
    object = error.object
    keyPath = error.keyPath
    operation = error.operation
  }

  /// A refusal of memory.
  package init(_ refusal: MemoryRefusal) {
    switch refusal {
    case .clientShare:
      self.init(.overloaded, "this client makes the server hold memory.clientBytes; let it read its answers")
    case .total: self.init(.overloaded, "the memory that clients share is taken")
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

  /// The response: `application/problem+json` with type, title, status, detail and what it is about.
  package var response: Response {
    var body: JSONObject = [
      "type": .string("/v1/problems/\(code.rawValue)"),
      "title": .string(code.explanation),
      "status": .integer(Int64(code.status.code)),
      "detail": .string(detail),
    ]
    body["object"] = object.map(Value.string)
    body["keyPath"] = keyPath.map(Value.string)
    body["operation"] = operation.map { .integer(Int64($0)) }
    var response = Response.json(body)
    response.status = code.status
    response.fields[.contentType] = "application/problem+json"
    response.fields.append(contentsOf: fields)
    return response
  }
}
