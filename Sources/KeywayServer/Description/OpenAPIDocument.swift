import CEmbeddedFiles
import HTTPServer
import HTTPTypes
import KeyValueModel
import Support

/// The description of the API as an OpenAPI 3.1 document: `openapi.yaml`, completed for one server. The head of the
/// file lists the additions.
struct OpenAPIDocument {
  /// The content of `openapi.yaml`, read when the first route is made.
  static let file = read()

  private let schema: Schema
  private let routes: [Route]
  private let access: AccessControl
  /// The problem responses, by the names under which operations refer to them.
  private var problems = JSONObject()
  /// The names of the problem responses, by status and codes.
  private var problemNames: [String: String] = [:]

  /// Creates the description of these routes on a server with this schema and these keys.
  init(schema: Schema, routes: [Route], access: AccessControl) {
    (self.schema, self.routes, self.access) = (schema, routes, access)
  }

  /// Returns the document.
  mutating func json() -> JSONObject {
    var document = Self.file
    for name in Self.file.members.keys where name.hasPrefix("x-") { document[name] = nil }
    var info = Self.object("info")
    info["version"] = .string(Release.version)
    document["info"] = .object(info)
    var paths = JSONObject()
    for route in routes { paths[route.pattern] = .object(path(route)) }
    document["paths"] = .object(paths)
    var components = Self.object("components")
    components["schemas"] = .object(schemas())
    components["responses"] = .object(problems)
    if !access.isOn {
      document["security"] = nil
      components["securitySchemes"] = nil
    }
    document["components"] = .object(components)
    return document
  }

  // MARK: The file

  private static func read() -> JSONObject {
    let file = keyway_openapi_document()
    let text = String(decoding: UnsafeBufferPointer(start: file.bytes, count: file.count), as: UTF8.self)
    do throws(YAMLMistake) {
      return try YAMLDocument.value(of: text).asObject ?? JSONObject()
    } catch {
      preconditionFailure("openapi.yaml:\(error.line):\(error.column): \(error.message)")
    }
  }

  /// Returns the object of the file below these names, or an empty one if there is none.
  private static func object(_ names: String...) -> JSONObject {
    names.reduce(file) { $0[$1]?.asObject ?? JSONObject() }
  }

  private static func reference(_ component: String) -> Value {
    .object(["$ref": .string("#/components/\(component)")])
  }

  /// Returns the methods that the file has for a path, with the names of the query parameters that each of them takes,
  /// and those that its stream takes.
  static func parameterNames(
    of pattern: String
  ) -> [(method: HTTPRequest.Method, plain: [String], streamed: [String])] {
    object("paths", pattern).members.compactMap { name, operation in
      // The other member is the parameters of the path.
      guard let operation = operation.asObject, let method = HTTPRequest.Method(name.uppercased()) else { return nil }
      return (
        method: method, plain: queryNames(operation["parameters"]),
        streamed: queryNames(operation["x-stream-parameters"])
      )
    }
  }

  private static func queryNames(_ parameters: Value?) -> [String] {
    (parameters?.asArray ?? []).filter(isQuery).compactMap { $0.asObject?["name"]?.asString }
  }

  private static func isQuery(_ parameter: Value) -> Bool { parameter.asObject?["in"]?.asString == "query" }

  // MARK: Schemas

  /// Returns the schemas of the file and those of the entities.
  private func schemas() -> JSONObject {
    var schemas = Self.object("components", "schemas")
    var entities: [Value] = []
    for entity in schema.entities {
      var form = JSONSchema.document(of: entity)
      // The description says what dialect it is in, and where the schema stands.
      form["$schema"] = nil
      form["$id"] = nil
      schemas["entity.\(entity.name)"] = .object(form)
      entities.append(Self.reference("schemas/entity.\(entity.name)"))
    }
    let others = Self.object("components", "schemas", "object")["anyOf"]?.asArray ?? []
    schemas["object"] = .object(["anyOf": .array(entities + others)])
    if !entities.isEmpty { schemas["creation"] = .object(["anyOf": .array(entities)]) }
    return schemas
  }

  // MARK: Paths and operations

  private mutating func path(_ route: Route) -> JSONObject {
    let described = Self.object("paths", route.pattern)
    var path = JSONObject()
    if let parameters = described["parameters"]?.asArray {
      path["parameters"] = .array(parameters.map { pathParameter($0) })
    }
    for method in route.methods {
      let name = method.rawValue.lowercased()
      switch method {
      case .head:
        var head = path["get"]?.asObject ?? JSONObject()
        for (member, prefix) in [("operationId", "head."), ("summary", "Only the headers: ")] {
          head[member] = head[member]?.asString.map { Value.string(prefix + $0) }
        }
        path[name] = .object(head)
      case .options: path[name] = .object(options(of: route, described))
      default: path[name] = .object(operation(Self.object("paths", route.pattern, name), method, of: route))
      }
    }
    return path
  }

  /// Returns a parameter of a path, with the names that the server has for it.
  private func pathParameter(_ described: Value) -> Value {
    guard var parameter = described.asObject, var form = parameter["schema"]?.asObject else { return described }
    let words: [String]
    switch parameter["name"]?.asString.flatMap(Route.Parameter.init) {
    case .entity?: words = schema.entities.map(\.name)
    case .code?: words = ProblemCode.allCases.map(\.rawValue)
    default: words = []
    }
    if !words.isEmpty { form["enum"] = .array(words.map(Value.string)) }
    parameter["schema"] = .object(form)
    return .object(parameter)
  }

  private mutating func operation(
    _ described: JSONObject, _ method: HTTPRequest.Method, of route: Route
  ) -> JSONObject {
    let added = added(to: method, of: route)
    var operation = described
    operation["x-problems"] = nil
    operation["x-stream-parameters"] = nil
    if access.isOn, route.audience.wantsToken, !(access.options.openMetrics && route.audience == .operators) {
      // Without the first alternative, which allows requests without a token.
      operation["security"] = .array(Array((Self.file["security"]?.asArray ?? []).dropFirst()))
    }
    let own = Self.parameters(described["parameters"]?.asArray ?? [], described["x-stream-parameters"]?.asArray)
    operation["parameters"] = .array(own + added.flatMap { $0["parameters"]?.asArray ?? [] })
    let codes = added.reduce(into: Self.codes(described["x-problems"])) { $0.formUnion(Self.codes($1["problems"])) }
    operation["responses"] = .object(responses(described["responses"]?.asObject ?? JSONObject(), codes))
    return operation
  }

  /// Returns the operation `OPTIONS`, which is the same for all resources.
  private mutating func options(of route: Route, _ described: JSONObject) -> JSONObject {
    var headers: JSONObject = ["Allow": Self.reference("headers/Allow")]
    if route.acceptPatch != nil { headers["Accept-Patch"] = Self.reference("headers/Accept-Patch") }
    let answer: JSONObject = ["description": .string("The methods of the resource."), "headers": .object(headers)]
    let codes = Self.codes(Self.object("x-added", "common")["problems"])
    var options: JSONObject = [
      "operationId": .string("options.\(route.pattern)"), "summary": .string("The methods of the resource"),
      "responses": .object(responses(["204": .object(answer)], codes)),
    ]
    options["tags"] = described.members.values.lazy.compactMap { $0.asObject?["tags"] }.first
    return options
  }

  /// Returns the members of `x-added` for a method of a resource.
  private func added(to method: HTTPRequest.Method, of route: Route) -> [JSONObject] {
    var names: [String] = []
    if !route.isAlwaysServed { names.append("store") }
    if !route.isUnlimited { names.append("limited") }
    if method == .get, !route.forms.isEmpty { names.append("negotiated") }
    if access.isOn || schema.hasRules, route.audience != .visitors { names.append("guarded") }
    return (names + ["common"]).map { Self.object("x-added", $0) }
  }

  /// Returns the parameters of an operation. If the operation also has a stream, each says which of the two takes it.
  private static func parameters(_ plain: [Value], _ streamed: [Value]?) -> [Value] {
    guard let streamed else { return plain }
    let ofAnswer = plain.filter(isQuery).map { streamed.contains($0) ? $0 : noted($0, " Not for a stream.") }
    let ofStream = streamed.filter { !plain.contains($0) }.map { noted($0, " Only for a stream.") }
    return ofAnswer + ofStream + plain.filter { !isQuery($0) }
  }

  private static func noted(_ described: Value, _ note: String) -> Value {
    guard var parameter = described.asObject, let text = parameter["description"]?.asString else { return described }
    parameter["description"] = .string(text + note)
    return .object(parameter)
  }

  // MARK: Answers

  /// Returns responses with the headers that all responses have, and with problems.
  private mutating func responses(_ answers: JSONObject, _ codes: Set<ProblemCode>) -> JSONObject {
    var responses = JSONObject()
    for (status, answer) in answers.members {
      var answer = answer.asObject ?? JSONObject()
      answer["headers"] = Self.headers(answer["headers"]?.asObject ?? JSONObject())
      responses[status] = .object(answer)
    }
    for (status, codes) in Self.byStatus(codes) { responses["\(status)"] = problem(codes, status) }
    return responses
  }

  /// Returns the headers of a response, with those that all responses have.
  private static func headers(_ described: JSONObject) -> Value {
    var headers = described
    for (name, header) in object("x-added", "common", "headers").members { headers[name] = header }
    return .object(headers)
  }

  /// Returns the problems of a code, or of a list of codes and of such lists.
  private static func codes(_ list: Value?) -> Set<ProblemCode> {
    guard let list else { return [] }
    if let elements = list.asArray {
      return elements.reduce(into: Set<ProblemCode>()) { $0.formUnion(codes($1)) }
    }
    guard let code = list.asString.flatMap(ProblemCode.init) else {
      preconditionFailure("openapi.yaml: \(list.json) is not the code of a problem")
    }
    return [code]
  }

  /// Returns problems by status, in ascending order.
  private static func byStatus(_ codes: Set<ProblemCode>) -> [(status: Int, codes: [ProblemCode])] {
    var byStatus: [Int: [ProblemCode]] = [:]
    for code in ProblemCode.allCases where codes.contains(code) {
      for status in code.statuses { byStatus[status.code, default: []].append(code) }
    }
    return byStatus.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Returns a reference to the response with one of these problems, which operations share.
  private mutating func problem(_ codes: [ProblemCode], _ status: Int) -> Value {
    let words = codes.map(\.rawValue).joined(separator: ", ")
    let key = "\(status) \(words)"
    let name = problemNames[key] ?? "problem-\(status)-\(problemNames.count + 1)"
    if problemNames.updateValue(name, forKey: key) == nil {
      var headers = JSONObject()
      for (header, list) in Self.object("x-problem-headers").members where !Self.codes(list).isDisjoint(with: codes) {
        headers[header] = Self.reference("headers/\(header)")
      }
      let types = codes.map { Value.string("/v1/problems/\($0.rawValue)") }
      let type: JSONObject = ["type": .string("string"), "enum": .array(types)]
      let form: JSONObject = [
        "allOf": .array([
          Self.reference("schemas/problem"), .object(["properties": .object(["type": .object(type)])]),
        ])
      ]
      problems[name] = .object([
        "description": .string(words), "headers": Self.headers(headers),
        "content": .object([Problem.mediaType: .object(["schema": .object(form)])]),
      ])
    }
    return Self.reference("responses/\(name)")
  }
}

/// `/v1/openapi.json`: the description of the API, for programs that make clients, pages or tests from it.
///
/// The document also describes its own row of the route table, so it is written once the table exists. That is before
/// the first request; after that it does not change.
final class DescriptionHandler: Sendable {
  private let document = Locked<[UInt8]>([])

  /// Writes the document.
  func describe(_ routes: [Route], schema: Schema, access: AccessControl) {
    var description = OpenAPIDocument(schema: schema, routes: routes, access: access)
    var bytes: [UInt8] = []
    description.json().appendJSON(to: &bytes)
    document.withLock { $0 = bytes }
  }

  /// Responds with the document.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return .response(.json(document.withLock { $0 }))
  }
}

extension ProblemCode {
  /// The statuses of responses with this problem: for a limit that one client has reached, also 429.
  fileprivate var statuses: [HTTPResponse.Status] {
    switch self {
    case .tooManyStreams, .tooManyQueries: [.tooManyRequests, status]
    default: [status]
    }
  }
}
