import KeyValueModel
import LoopbackKit
import Seeding
import Testing

@Suite("Noise")
struct FuzzTests {
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

  private func head(_ method: String, _ target: String, _ body: [UInt8]) -> [UInt8] {
    Array(
      ("\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        + "Content-Length: \(body.count)\r\nConnection: close\r\n\r\n").utf8) + body
  }

  /// The server is there, has its store, and answers.
  private func isWell(_ server: ServerProcess) throws {
    #expect(server.child.isRunning)
    #expect(try server.client.send("GET", "/healthz").text == "{\"status\":\"alive\"}\n")
    #expect(try server.status["version"].text != nil)
    #expect(!server.child.errors.contains("Fatal"))
  }

  @Test("Random JSON, of the specification's own words, on every route and method: never a 5xx, and the server lives on")
  func bodies() throws {
    let seed = UInt64.random(in: .min ... .max)
    print("fuzz seed (bodies): \(seed)")
    var generator = SplitMix64(seed: seed)
    let server = try ServerProcess()
    for method in Self.methods {
      for target in Self.targets {
        for round in 0..<6 {
          let body = json(5, &generator).json
          var headers = ["Connection": "close"]
          if method == "PATCH", round > 2 { headers["Content-Type"] = "application/json-patch+json" }
          let response = try server.client.send(method, target, headers, body: body)
          #expect(response.status < 500, "seed \(seed): \(method) \(target) \(body)\n\(response.text)")
        }
      }
    }
    try isWell(server)
    #expect(try server.stop() == 0)
  }

  /// An operation of a transaction, or of a JSON Patch, whose members are of the right sort more often than not.
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
    let seed = UInt64.random(in: .min ... .max)
    print("fuzz seed (operations): \(seed)")
    var generator = SplitMix64(seed: seed)
    let server = try ServerProcess()
    for number in 0..<600 {
      let isPatch = number.isMultiple(of: 2)
      let count = Int.random(in: 1...3, using: &generator)
      let operations = Value.array((0..<count).map { _ in operation(isPatch: isPatch, &generator) })
      let before = try server.revision
      let response =
        if isPatch {
          try server.client.send(
            "PATCH", "/v1/objects/Note/1", ["Content-Type": "application/json-patch+json"], body: operations.json)
        } else {
          try server.client.send("POST", "/v1/transactions", body: Value.object(["operations": operations]).json)
        }
      #expect(response.status < 500, "seed \(seed): \(operations.json)\n\(response.text)")
      #expect(try server.revision == before + (response.status == 200 ? 1 : 0), "seed \(seed): \(operations.json)")
    }
    try isWell(server)
    #expect(try server.stop() == 0)
  }

  @Test("Valid requests with some bytes changed, left out or put in: never a 500, and the server lives on")
  func mutations() throws {
    let seed = UInt64.random(in: .min ... .max)
    print("fuzz seed (mutations): \(seed)")
    var generator = SplitMix64(seed: seed)
    let server = try ServerProcess(settings: ["request.seconds": "1"])
    let body = Array(#"{"operations":[{"op":"set","object":"Account/1","keyPath":"balance","value":1}]}"#.utf8)
    for _ in 0..<500 {
      let target = Self.targets.randomElement(using: &generator) ?? "/"
      var bytes = head(Self.methods.randomElement(using: &generator) ?? "GET", target, body)
      for _ in 0..<Int.random(in: 1...5, using: &generator) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: bytes[index] = .random(in: 0...255, using: &generator)
        case 1: bytes.remove(at: index)
        default: bytes.insert(.random(in: 0...255, using: &generator), at: index)
        }
      }
      try expectNoFailure(bytes, server, "seed \(seed)")
    }
    try isWell(server)
    #expect(try server.stop() == 0)
  }

  @Test("Random bytes: the server answers with what it pleases, and lives on")
  func noise() throws {
    let seed = UInt64.random(in: .min ... .max)
    print("fuzz seed (noise): \(seed)")
    var generator = SplitMix64(seed: seed)
    let server = try ServerProcess(settings: ["request.seconds": "1"])
    for _ in 0..<200 {
      let count = Int.random(in: 1...2000, using: &generator)
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
      try expectNoFailure(bytes + Array("\r\n\r\n".utf8), server, "seed \(seed)")
    }
    try isWell(server)
    #expect(try server.hasNoStreams())
    #expect(try server.revision == 1)
  }

  /// Sends bytes and looks at the status, if there is an answer soon. Not to answer is an answer too.
  private func expectNoFailure(_ bytes: [UInt8], _ server: ServerProcess, _ comment: String) throws {
    let socket = try WireSocket(port: server.port)
    do {
      try socket.send(bytes)
      let head = try WireReader(socket).head(before: Deadline(seconds: 0.05))
      #expect(head.status != 500, "\(comment): \(String(decoding: bytes, as: UTF8.self).debugDescription)")
    } catch {
      if case .malformed = error.reason { Issue.record("\(comment): \(error)") }
    }
    socket.reset()
  }
}
