import KeyValueModel
import TestKit
import Testing

@Suite("Noise")
struct RequestFuzzTests {
  private static let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X"]
  private static let targets = [
    "/healthz", "/readyz", "/metrics", "/v1/status", "/v1/entities", "/v1/entities/Account", "/v1/problems/draining",
    "/v1/objects/Account", "/v1/objects/Account/1", "/v1/objects/Account/1/balance", "/v1/objects/Account/1/owner",
    "/v1/objects/Account/1/owner.lastName", "/v1/objects/Note/1/tags", "/v1/objects/Person/7/spouse",
    "/v1/objects/Watch/1", "/v1/objects/Department/1", "/v1/objects/Department/1?expand=employees.department",
    "/v1/objects/Department/1/employees", "/v1/objects/Department/1/employees?index=0",
    "/v1/objects/Department/1/employees?index=1,0", "/v1/objects/Department/1/employees?object=Employee/1",
    "/v1/objects/Department/1/employees.@sum.salary", "/v1/objects/Department/1/employees.department.employees",
    "/v1/objects/Note/1/labels", "/v1/objects/Note/1/labels?operation=union",
    "/v1/objects/Note/1/labels?operation=set", "/v1/objects/Note/1/labels?value=%5B%22a%22%5D",
    "/v1/transactions", "/v1/journal", "/v1/streams", "/v1/streams/x", "/v1/streams/x/cells", "/v1/streams/x/cells/a",
  ]
  private static let words: [Value] = [
    .null, .bool(true), .integer(0), .integer(.max), .integer(-1), .number(0.5), .number(1e308), .string(""),
    .string("Account/1"), .string("Person/7"), .string("balance"), .string("set"), .string("create"), .string("delete"),
    .string("Employee/1"), .string("Employee/2"), .string("insert"), .string("remove"), .string("replace"),
    .string("employees"), .string("labels"), .string("add"), .string("move"), .string("copy"), .string("test"),
    .string("/labels/-"), .string("/tags"), .string("/employees/0"), .string("/"),
    .string("owner"), .string("owner.lastName"), .string("x\u{0}\n\"\\ü🎹"),
    .string(String(repeating: "long", count: 300)),
  ]
  private static let names = [
    "operations", "op", "object", "keyPath", "value", "entity", "key", "revision", "cells", "a", "keyPaths", "options",
    "index", "path", "from", "employees", "labels", "visible", "context", "balance", "owner", "spouse", "@ref",
    "@revision", "lastName", "tags", "",
  ]

  private func json(_ depth: Int, _ generator: inout SplitMix64) -> Value {
    switch Int.random(in: 0..<(depth > 0 ? 4 : 1), using: &generator) {
    case 0: return Self.words.randomElement(using: &generator) ?? .null
    case 1: return .array((0..<Int.random(in: 0..<4, using: &generator)).map { _ in json(depth - 1, &generator) })
    default:
      var object = JSONObject()
      for _ in 0..<Int.random(in: 0..<5, using: &generator) {
        object[Self.names.randomElement(using: &generator) ?? "a"] = json(depth - 1, &generator)
      }
      return .object(object)
    }
  }

  /// Expects that the server runs, has its store, and responds.
  private func isWell(_ server: ServerProcess) throws {
    #expect(server.child.isRunning)
    #expect(try server.client.send("GET", "/healthz").text == "{\"status\":\"alive\"}\n")
    #expect(try server.status["version"].text != nil)
    #expect(!server.child.errors.contains("Fatal"))
  }

  @Test(
    "Random JSON, of the specification's own words, on every route and method: never a 5xx, and the server lives on")
  func bodies() throws {
    let server = try ServerProcess()
    let failure = Fuzzer("bodies", rounds: 1_500).run(
      make: { generator in
        let method = Self.methods.randomElement(using: &generator) ?? ""
        var headers = ["Connection": "close"]
        if method == "PATCH", generator.chance(50) { headers["Content-Type"] = "application/json-patch+json" }
        let target = Self.targets.randomElement(using: &generator) ?? ""
        return WireRequest(method, target, headers, body: json(5, &generator).json)
      }, describe: { $0.text(host: "localhost") },
      check: { request in
        let response = try server.client.send(request.method, request.target, request.headers, body: request.body)
        return response.status < 500 ? nil : response.text
      })
    #expect(failure == nil, "\(failure?.description ?? "")")
    try isWell(server)
    #expect(try server.stop() == 0)
  }

  /// Makes an operation of a transaction, or of a JSON Patch, most of whose members have the right type.
  private func operation(isPatch: Bool, _ generator: inout SplitMix64) -> Value {
    func one(_ texts: [String]) -> Value { .string(texts.randomElement(using: &generator) ?? "") }
    var object = JSONObject()
    if isPatch {
      let paths = ["/labels", "/labels/0", "/labels/-", "/tags", "/tags/a", "/text", "", "/@ref", "/tags/a/0", "x"]
      object["op"] = one(["add", "remove", "replace", "move", "copy", "test"])
      object["path"] = one(paths)
      object["from"] = one(paths)
    } else {
      object["op"] = one(["insert", "remove", "replace", "set", "willChange", "didChange"])
      object["object"] = one(["Department/1", "Note/1", "Employee/1"])
      object["keyPath"] = one(["employees", "labels", "department.employees", "department", "employees.department"])
      object["key"] = one(["employees", "labels"])
      if Bool.random(using: &generator) {
        object["index"] = .array((0..<2).map { _ in .integer(.random(in: -1...3, using: &generator)) })
      }
    }
    object["value"] = json(3, &generator)
    if Bool.random(using: &generator) {
      object["value"] = .array([
        one(["a", "Employee/1", "Employee/2", "Employee/404"]), .object(["@ref": one(["Employee/9"])]),
      ])
    }
    return .object(object)
  }

  @Test("Random operations of transactions and patches, nearly right: never a 5xx, and refused ones leave no trace")
  func operations() throws {
    let server = try ServerProcess()
    let failure = Fuzzer("operations", rounds: 600).run(
      make: { generator in
        let isPatch = Bool.random(using: &generator)
        let count = Int.random(in: 1...3, using: &generator)
        return (isPatch, Value.array((0..<count).map { _ in operation(isPatch: isPatch, &generator) }))
      }, describe: { "\($0.0 ? "JSON Patch" : "transaction") \($0.1.json)" },
      check: { isPatch, operations in
        let before = try server.revision
        let response =
          if isPatch {
            try server.client.send(
              "PATCH", "/v1/objects/Note/1", ["Content-Type": "application/json-patch+json"], body: operations.json)
          } else {
            try server.client.send("POST", "/v1/transactions", body: Value.object(["operations": operations]).json)
          }
        if response.status >= 500 { return response.text }
        let after = try server.revision
        let expected = before + (response.status == 200 ? 1 : 0)
        return after == expected ? nil : "revision \(before) is \(after) by \(response.status)"
      })
    #expect(failure == nil, "\(failure?.description ?? "")")
    try isWell(server)
    #expect(try server.stop() == 0)
  }
}
