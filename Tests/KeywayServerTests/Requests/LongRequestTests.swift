import HTTPServer
import KeyValueModel
import KeywayServer
import TestKit
import Testing

/// Requests that read a lot: their steps, their threads, and their end.
@Suite("Long requests")
struct LongRequestTests {
  private static let schema = """
    entities:
      Employee:
        keys:
          name: { type: string }
          salary: { type: number }
          department: { toOne: Department, inverse: employees }
          above: { type: integer, computed: "department.employees.filter(e, e.salary > salary).size()" }
      Department:
        keys:
          name: { type: string }
          employees: { toMany: Employee, ordered: true, inverse: department }
          total: { type: number, computed: employees.@sum.salary }
          mean: { type: number, computed: "sum(employees.map(e, e.salary)) / 2.0" }
    """

  /// Makes a department of so many employees.
  private static func server(
    employees: Int, _ configure: (inout KeywayServer.Configuration) -> Void = { _ in }
  ) throws -> TestServer {
    let server = try TestServer(schema: schema, objects: [("Department/1", #"{"name":"Engines"}"#)], configure)
    let members = (0..<employees).map { #"{"@ref":"Employee/\#($0)","name":"n\#($0)","salary":\#($0)}"# }
    try server.client.must("POST", "/v1/objects/Department/1/employees", body: "[\(members.joined(separator: ","))]")
    return server
  }

  /// A number of employees with which ``endless`` takes longer than any test, and one of them fewer steps than a filter
  /// may take for one object.
  private static let many = 200

  /// A query that compares, for every employee, every colleague with every other one.
  private static let endless =
    "/v1/objects/Employee?filter="
    + "department.employees.exists(e, department.employees.exists(f, e.salary == f.salary + salary + 0.5))".queryEncoded

  static let costly = [
    "Employee?sort=above", "Employee?filter=above%3E3", "Employee?section=above", "Employee?keys=above",
    "Department/1/employees.above", "Department/1/employees.@sum.above", "Department/1/name,employees.above",
    "Department/1?expand=employees", "Department?expand=employees&keys=employees",
    "Employee?filter=department.employees.exists(e,e.salary%3Esalary%2B1000.0)",
  ]

  @Test("All reads of a request count steps, and a request that takes too many is refused", arguments: costly)
  func steps(_ target: String) throws {
    let server = try Self.server(employees: 150) { $0.requests.steps = 30_000 }
    let response = try server.client.send("GET", "/v1/objects/\(target)")
    #expect(response.status == 429 && response.problem == "too-many-steps", "\(response.text.prefix(300))")
    #expect(response.json["detail"].text?.contains("request.steps") == true && response["Retry-After"] != nil)
  }

  static let shared = [
    "Employee?keys=name&sort=department.total", "Employee?keys=name&sort=-department.employees.@sum.salary,name",
    "Employee?keys=name&section=department.mean", "Employee?keys=name&filter=department.total%3E5.0",
    "Employee?keys=name&filter=department.mean%3E5.0&sort=department.mean", "Department/1/employees.department.mean",
    "Department/1/employees.department.total,employees.department.@unionOfObjects.mean",
    "Department?keys=name,total,mean",
  ]

  @Test("The fold of a collection is computed once for all objects of a request that read it", arguments: shared)
  func once(_ target: String) throws {
    // Evaluated separately for each of 300 employees it would take 90,000 steps.
    let server = try Self.server(employees: 300) { $0.requests.steps = 30_000 }
    let response = try server.client.send("GET", "/v1/objects/\(target)")
    #expect(response.status == 200, "\(response.text.prefix(300))")
  }

  private static func metric(_ name: String, _ server: TestServer) throws -> Int? {
    try server.client.must("GET", "/metrics").text.split(separator: "\n")
      .first { $0.hasPrefix(name + " ") }.flatMap { Int($0.dropFirst(name.count + 1)) }
  }

  /// Begins requests that do not end by themselves, and waits until one of them runs.
  private static func hold(_ server: TestServer, requests: Int = 1) throws -> [WireSocket] {
    let sockets = try (0..<requests).map { _ in
      let socket = try WireSocket(port: server.client.port)
      try socket.send("GET \(endless) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      return socket
    }
    let isHeld = try Deadline().awaits {
      try metric("keyway_readings_running", server) == 1 && metric("keyway_readings_waiting", server) == requests - 1
    }
    #expect(isHeld)
    return sockets
  }

  private static func configure(_ configuration: inout KeywayServer.Configuration) {
    configuration.requests.steps = .max / 2
    configuration.requests.threads = 1
    configuration.requests.waiting = 3
    configuration.requests.waitingPerClient = 2
    configuration.server.threads = 1
  }

  @Test("While long requests hold every thread for them, health and short requests are answered, and writes are done")
  func health() throws {
    let server = try Self.server(employees: Self.many, Self.configure)
    let held = try Self.hold(server, requests: 3)
    for target in ["/healthz", "/readyz", "/metrics", "/v1/status", "/v1/entities", "/v1/objects/Department/1/name"] {
      #expect(try server.client.send("GET", target).status == 200, "\(target)")
    }
    try server.set("Employee/1/name", #""new""#)
    #expect(try server.client.json("/v1/objects/Employee/1")["name"].text == "new")
    #expect(try Self.metric("keyway_readings_running", server) == 1)
    #expect(try Self.metric("keyway_readings_waiting", server) == 2)
    for socket in held { socket.close() }
  }

  @Test("A request over its client's share of the queue is refused at once")
  func queue() throws {
    let server = try Self.server(employees: Self.many, Self.configure)
    let held = try Self.hold(server, requests: 3)
    let refused = try server.client.send("GET", Self.endless)
    #expect(refused.status == 503 && refused.problem == "overloaded" && refused["Retry-After"] != nil)
    #expect(try Self.metric("keyway_readings_refused_total", server) == 1)
    for socket in held { socket.close() }
  }

  @Test("The work for a client that has left ends, and that of those who waited behind it begins")
  func leaving() throws {
    let server = try Self.server(employees: Self.many, Self.configure)
    let held = try Self.hold(server, requests: 2)
    let waiting = try WireSocket(port: server.client.port)
    try waiting.send("GET /v1/objects/Employee?sort=above&limit=1&keys=name HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(try Deadline().awaits { try Self.metric("keyway_readings_waiting", server) == 2 })
    for socket in held { socket.close() }
    let answer = try WireReader(waiting).response(hasBody: true, before: Deadline())
    #expect(answer.status == 200 && answer.json["objects"][0]["name"].text == "n\(Self.many - 1)")
    #expect(try Deadline().awaits { try Self.metric("keyway_readings_running", server) == 0 })
    #expect(try Self.metric("keyway_readings_abandoned_total", server) == 2)
    // It is no failure of the server.
    #expect(try Deadline().awaits { try server.client.must("GET", "/metrics").text.contains(#"status="4xx"} 2"#) })
    #expect(try !server.client.must("GET", "/metrics").text.contains(#"status="5xx""#))
  }

  @Test("A server that stops ends the work under way, and answers those who wait for it")
  func draining() throws {
    let server = try Self.server(employees: Self.many, Self.configure)
    let held = try Self.hold(server, requests: 3)
    server.server.drain(seconds: 1)
    let answers = try held.map { try WireReader($0).response(hasBody: true, before: Deadline()) }
    // On a machine that does not run this test for a minute, the first may have their responses; the last comes after
    // them.
    for (index, answer) in answers.enumerated() where answer.status != 200 || index == answers.count - 1 {
      #expect(answer.status == 503 && answer.problem == "draining", "\(answer.status) \(answer.text.prefix(300))")
    }
  }
}
