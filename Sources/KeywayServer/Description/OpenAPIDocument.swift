import HTTPServer
import HTTPTypes
import KeyValueModel
import Support

/// The description of the API as an OpenAPI 3.1 document, made from the route table and the schema.
private struct OpenAPIDocument {
  private let schema: Schema
  private let routes: [Route]
  /// Whether there are keys, so that tokens are asked for.
  private let hasKeys: Bool
  /// Whether clients may be refused something: there are keys, or rules.
  private let hasAccess: Bool
  /// Whether what is for operators is for everybody.
  private let opensMetrics: Bool
  /// What several operations have in common, by the names under which they refer to it.
  private var problems = JSONObject()
  private var problemNames: [String: String] = [:]
  private var headers = JSONObject()

  /// A description of these routes on a server with this schema and these keys.
  init(schema: Schema, routes: [Route], access: AccessControl) {
    (self.schema, self.routes, hasKeys) = (schema, routes, access.isOn)
    hasAccess = access.isOn || schema.hasRules
    opensMetrics = access.options.openMetrics
  }

  /// The document.
  mutating func json() -> JSONObject {
    var paths = JSONObject()
    for route in routes { paths[route.pattern] = .object(path(route)) }
    var components: JSONObject = ["schemas": .object(ComponentSchemas(schema: schema).all())]
    var document: JSONObject = [
      "openapi": .string("3.1.0"),
      "info": .object([
        "title": .string("Keyway"), "version": .string(Release.version),
        "description": .string("A live-object server. GET gives JSON, or with Accept: text/event-stream a stream."),
      ]),
      "servers": .array([.object(["url": .string("/")])]),
      "tags": .array(RouteDescription.Chapter.allCases.map { .object(["name": .string($0.rawValue)]) }),
    ]
    if hasKeys {
      components["securitySchemes"] = .object(Self.securitySchemes)
      document["security"] = .array(Self.optionalToken)
    }
    components["responses"] = .object(problems)
    components["headers"] = .object(headers)
    document["paths"] = .object(paths)
    document["components"] = .object(components)
    return document
  }

  private static let securitySchemes: JSONObject = [
    "bearer": .object([
      "type": .string("http"), "scheme": .string("bearer"), "bearerFormat": .string("JWT"),
    ]),
    "session": .object([
      "type": .string("apiKey"), "in": .string("cookie"), "name": .string(SessionCookie.name),
      "description": .string("Over TLS the cookie is named `\(SessionCookie.secureName)`."),
    ]),
  ]
  private static let token: [Value] = [
    .object(["bearer": .array([])]), .object(["session": .array([])]),
  ]
  private static let optionalToken: [Value] = [.object([:])] + token

  // MARK: Paths

  private mutating func path(_ route: Route) -> JSONObject {
    var path = JSONObject()
    let parameters = route.parameters.map { Value.object(pathParameter($0)) }
    if !parameters.isEmpty { path["parameters"] = .array(parameters) }
    for method in route.methods {
      path[method.rawValue.lowercased()] = .object(operation(method, of: route))
    }
    return path
  }

  private func pathParameter(_ parameter: Route.Parameter) -> JSONObject {
    let form: SchemaForm =
      switch parameter {
      case .entity: schema.entities.isEmpty ? .text : .word(schema.entities.map(\.name))
      case .id, .cell: .text(matching: ComponentSchemas.idPattern)
      case .code: .word(ProblemCode.allCases.map(\.rawValue))
      case .keyPath, .stream, .sub, .file: .text
      }
    return [
      "name": .string(parameter.rawValue), "in": .string("path"), "required": .bool(true),
      "description": .string(parameter.meaning), "schema": .object(form.json),
    ]
  }

  // MARK: Operations

  private mutating func operation(_ method: HTTPRequest.Method, of route: Route) -> JSONObject {
    if method == .options { return options(of: route) }
    let isHead = method == .head
    guard let described = route.description.operations[isHead ? .get : method] else { return [:] }
    var operation: JSONObject = [
      "operationId": .string(isHead ? "head.\(described.name)" : described.name),
      "summary": .string(isHead ? "The headers alone: \(described.summary)" : described.summary),
      "tags": .array([.string(route.description.chapter.rawValue)]),
    ]
    if hasKeys, route.audience.wantsToken, !(opensMetrics && route.audience == .operators) {
      operation["security"] = .array(Self.token)
    }
    let parameters = self.parameters(of: described, route)
    if !parameters.isEmpty { operation["parameters"] = .array(parameters) }
    operation["requestBody"] = described.body.map { .object(body($0)) }
    operation["responses"] = .object(responses(to: described, method, of: route))
    return operation
  }

  /// `OPTIONS`, which is the same everywhere.
  private mutating func options(of route: Route) -> JSONObject {
    let headers: [ParameterDescription] = [.allow] + (route.acceptPatch == nil ? [] : [.acceptPatch])
    let answer = AnswerDescription.nothing("The methods of the resource.", headers: headers)
    var responses: JSONObject = ["204": .object(response(answer, []))]
    for (status, codes) in Self.byStatus(Set<ProblemCode>.common) {
      responses["\(status)"] = .object(problem(codes, status))
    }
    return [
      "operationId": .string("options.\(route.pattern)"), "summary": .string("The methods of the resource"),
      "tags": .array([.string(route.description.chapter.rawValue)]),
      "responses": .object(responses),
    ]
  }

  private func parameters(of described: OperationDescription, _ route: Route) -> [Value] {
    let (plain, streamed) = (described.parameters, described.streamParameters)
    let isBoth = !described.events.isEmpty && !described.answers.allSatisfy { $0.types.isEmpty }
    var parameters = plain.map { parameter -> Value in
      let isStreamed = streamed.contains { $0.name == parameter.name }
      return .object(Self.parameter(parameter, in: "query", note: isBoth && !isStreamed ? " Not of a stream." : ""))
    }
    for parameter in streamed where !plain.contains(where: { $0.name == parameter.name }) {
      parameters.append(.object(Self.parameter(parameter, in: "query", note: isBoth ? " Of a stream alone." : "")))
    }
    let headers =
      described.headers + (route.isAlwaysServed ? [] : [ParameterDescription.seen]) + [ParameterDescription.requestID]
    return parameters + headers.map { .object(Self.parameter($0, in: "header")) }
  }

  private static func parameter(
    _ parameter: ParameterDescription, in place: String, note: String = ""
  ) -> JSONObject {
    [
      "name": .string(parameter.name), "in": .string(place), "description": .string(parameter.meaning + note),
      "schema": .object(parameter.schema.json),
    ]
  }

  private func body(_ body: BodyDescription) -> JSONObject {
    ["required": .bool(body.isRequired), "content": .object(Self.content(body.types))]
  }

  private static func content(_ types: [(name: String, schema: SchemaForm)]) -> JSONObject {
    var content = JSONObject()
    for (name, schema) in types { content[name] = .object(["schema": .object(schema.json)]) }
    return content
  }

  // MARK: Responses

  private mutating func responses(
    to described: OperationDescription, _ method: HTTPRequest.Method, of route: Route
  ) -> JSONObject {
    var responses = JSONObject()
    for answer in described.answers {
      let events = answer.status == .ok ? described.events : []
      responses["\(answer.status.code)"] = .object(
        response(answer, events, isRepeated: described.headers.contains { $0.name == "Idempotency-Key" }))
    }
    for (status, codes) in Self.byStatus(codes(of: described, method, route)) {
      responses["\(status)"] = .object(problem(codes, status))
    }
    return responses
  }

  private func codes(
    of described: OperationDescription, _ method: HTTPRequest.Method, _ route: Route
  ) -> Set<ProblemCode> {
    var codes = described.problems.and(.common)
    if !route.isAlwaysServed { codes = codes.and(.state) }
    if !route.isUnlimited { codes.insert(.tooManyRequests) }
    if hasAccess, route.audience != .visitors { codes = codes.and(.access) }
    if method == .get || method == .head, !route.forms.isEmpty { codes.insert(.notAcceptable) }
    return codes
  }

  /// Problems by status, in order.
  private static func byStatus(_ codes: Set<ProblemCode>) -> [(status: Int, codes: [ProblemCode])] {
    var byStatus: [Int: [ProblemCode]] = [:]
    for code in ProblemCode.allCases where codes.contains(code) {
      for status in code.statuses { byStatus[status.code, default: []].append(code) }
    }
    return byStatus.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  private mutating func response(
    _ answer: AnswerDescription, _ events: [EventDescription], isRepeated: Bool = false
  ) -> JSONObject {
    var response: JSONObject = ["description": .string(answer.meaning)]
    response["headers"] = .object(headers(answer.headers + (isRepeated ? [.replayed] : [])))
    var content = Self.content(answer.types)
    if !events.isEmpty {
      content[Negotiation.Form.stream.type] = .object(["schema": .object(EventDescription.stream(of: events).json)])
    }
    if !content.members.isEmpty { response["content"] = .object(content) }
    return response
  }

  /// Those of an answer, and those that every answer has.
  private mutating func headers(_ described: [ParameterDescription]) -> JSONObject {
    var named = JSONObject()
    for (header, isRequired) in described.map({ ($0, false) }) + [(.cursor, true), (.answeredID, true)] {
      headers[header.name] = .object([
        "description": .string(header.meaning), "required": .bool(isRequired), "schema": .object(header.schema.json),
      ])
      named[header.name] = .object(["$ref": .string("#/components/headers/\(header.name)")])
    }
    return named
  }

  private mutating func problem(_ codes: [ProblemCode], _ status: Int) -> JSONObject {
    let words = codes.map(\.rawValue).joined(separator: ", ")
    let key = "\(status) \(words)"
    let name = problemNames[key] ?? "problem-\(status)-\(problemNames.count + 1)"
    if problemNames.updateValue(name, forKey: key) == nil {
      let types = codes.map { "/v1/problems/\($0.rawValue)" }
      let form = SchemaForm([
        "allOf": .array([
          .object(SchemaForm.named("problem").json),
          .object(["properties": .object(["type": .object(SchemaForm.word(types).json)])]),
        ])
      ])
      problems[name] = .object([
        "description": .string(words),
        "headers": .object(headers(codes.flatMap(\.headers))),
        "content": .object([Problem.mediaType: .object(["schema": .object(form.json)])]),
      ])
    }
    return ["$ref": .string("#/components/responses/\(name)")]
  }
}

/// `/v1/openapi.json`: what the server takes and gives, for programs that make clients, pages or tests of it.
///
/// It describes its own row of the route table too, so it is written once the table is there. That is before the first
/// request; from then on it stays as it is.
final class DescriptionHandler: Sendable {
  private let document = Locked<[UInt8]>([])

  /// Writes the document.
  func describe(_ routes: [Route], schema: Schema, access: AccessControl) {
    var description = OpenAPIDocument(schema: schema, routes: routes, access: access)
    var bytes: [UInt8] = []
    description.json().appendJSON(to: &bytes)
    document.withLock { $0 = bytes }
  }

  /// The document.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return .response(.json(document.withLock { $0 }))
  }
}

extension ProblemCode {
  /// The statuses that answers with it have: of a limit that one client has met, also 429.
  fileprivate var statuses: [HTTPResponse.Status] {
    switch self {
    case .tooManyStreams, .tooManyQueries: [.tooManyRequests, status]
    default: [status]
    }
  }

  /// The headers that help.
  fileprivate var headers: [ParameterDescription] {
    switch self {
    case .unauthenticated: [.challenge]
    case .notAcceptable: [.accept]
    case .unsupportedMediaType: [.accept, .acceptPatch, .acceptEncoding]
    case .staleRevision: [.tag]
    case .rangeNotSatisfiable: [.contentRange]
    case .tooManyCells, .tooManyKeyPaths, .tooManyOperations, .tooManyObjects, .tooManyBytes, .tooManySteps,
      .tooManyRequests, .tooManyStreams, .tooManyQueries, .tooManyLeases, .tooManyLeasesOfClient, .overloaded, .behind,
      .leaderUnreachable, .draining, .storeUnavailable,
      .idempotencyKeyInUse:
      [.retryAfter]
    default: []
    }
  }
}
