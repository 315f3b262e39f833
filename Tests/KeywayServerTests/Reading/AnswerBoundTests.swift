import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Bounds of answers")
struct AnswerBoundTests {
  private static let schema = """
    entities:
      Employee:
        keys:
          name: { type: string }
          text: { type: string }
          department: { toOne: Department, inverse: employees }
      Department:
        keys:
          name: { type: string }
          head: { toOne: Employee }
          employees: { toMany: Employee, ordered: true, inverse: department }
          texts: { computed: employees.text }
    """

  /// Makes a department of 60 employees, whose head has a text of 20,000 bytes.
  private static func server(
    _ configure: (inout KeywayServer.Configuration) -> Void = { _ in }
  ) throws -> TestServer {
    let server = try TestServer(schema: schema, objects: [("Department/1", #"{"name":"Engines"}"#)]) {
      $0.requests.answerBytes = 300_000
      configure(&$0)
    }
    let members = (0..<60).map { #"{"@ref":"Employee/\#($0)","name":"n\#($0)"}"# }
    try server.client.must("POST", "/v1/objects/Department/1/employees", body: "[\(members.joined(separator: ","))]")
    try server.set("Employee/7/text", "\"\(String(repeating: "x", count: 20_000))\"")
    try server.set("Department/1/head", #""Employee/7""#)
    return server
  }

  static let targets = [
    // The first once took gigabytes: each of 60 × 60 employees with the head of its department.
    "Department/1?expand=employees.department.employees.department.head",
    "Department/1?expand=employees.department.head", "Department?expand=employees.department.head",
    "Employee?expand=department.head&limit=60", "Employee?keys=department&expand=department.head",
    "Employee?filter=true&sort=name&expand=department.head", "Department/1/employees.department.head.text",
    "Department/1/employees.department.@unionOfObjects.head.text", "Department/1/employees.department.texts",
    "Department/1/name,employees.department.head.text,employees.department.texts",
    "Department/1/employees.department.employees",
  ]

  @Test("An answer that would be too long is refused while it is encoded, and says what to do", arguments: targets)
  func tooLong(_ target: String) throws {
    let server = try Self.server { $0.requests.answerBytes = 40_000 }
    let response = try server.client.send("GET", "/v1/objects/\(target)")
    #expect(response.status == 429 && response.problem == "too-many-bytes", "\(response.text.prefix(500))")
    #expect(response["Retry-After"] != nil)
    let detail = response.json["detail"].text ?? ""
    #expect(detail.contains("answer.bytes") && detail.contains("limit") && detail.contains("keys"), "\(detail)")
    #expect(try server.client.send("GET", "/v1/objects/Department/1/name").text == "\"Engines\"\n")
  }

  @Test("A response within the bound is sent whole, even if it exceeds the memory that is reserved at once")
  func within() throws {
    let server = try Self.server { $0.requests.answerBytes = 4_000_000 }
    let expanded = try server.client.json("/v1/objects/Department/1?expand=employees.department.head")
    #expect(expanded["employees"].items.count == 60)
    #expect(expanded["employees"].items.allSatisfy { $0["department"]["head"]["text"].text?.count == 20_000 })
    let texts = try server.client.json("/v1/objects/Department/1/name,employees.department.head.text")
    #expect(texts.names == ["name", "employees.department.head.text"])
    #expect(texts["employees.department.head.text"].items.map { $0.text?.count } == Array(repeating: 20_000, count: 60))
    let page = try server.client.json("/v1/objects/Employee?expand=department.head&limit=50")
    #expect(page["objects"].items.count == 50 && page["count"].whole == 60 && page["next"].text != nil)
    let next = try #require(page["next"].text)
    let rest = try server.client.json("/v1/objects/Employee?expand=department.head&page=\(next)")
    #expect(rest["objects"].items.count == 10)
  }

  @Test("A write whose echo would be too long is done, and answered with its ETag and without a body")
  func echo() throws {
    let server = try Self.server { $0.requests.answerBytes = 10_000 }
    let text = "\"\(String(repeating: "y", count: 12_000))\""
    let set = try server.client.send("PUT", "/v1/objects/Employee/8/text", body: text)
    #expect(set.status == 200 && set.body.isEmpty && set["ETag"] != nil && set["Keyway-Cursor"] != nil)
    let patched = try server.client.send("PATCH", "/v1/objects/Employee/9", body: "{\"text\":\(text)}")
    #expect(patched.status == 200 && patched.body.isEmpty && patched["ETag"] != nil)
    let made = try server.client.send("POST", "/v1/objects/Employee", body: "{\"text\":\(text)}")
    #expect(made.status == 201 && made.body.isEmpty && made["Location"] != nil)
    #expect(try server.client.send("GET", "/v1/objects/Employee/8/text").problem == "too-many-bytes")
    #expect(try server.client.json("/v1/objects/Employee?filter=size(text)%3D%3D12000&keys=name")["count"].whole == 3)
  }

  @Test("Lists of streams and of cells are bounded too")
  func streams() throws {
    let server = try Self.server { $0.requests.answerBytes = 4096 }
    var streams: [WireStream] = []
    for _ in 0..<60 { streams.append(try server.client.stream("/v1/objects/Department/1/name")) }
    #expect(try server.client.send("GET", "/v1/streams").problem == "too-many-bytes")
    let cells = (0..<60).map { #""c\#($0)":{"object":"Employee/\#($0)","keyPaths":["name"],"context":"\#($0)"}"# }
    let stream = try server.client.stream(
      "/v1/streams", ["Content-Type": "application/json"], method: "POST",
      body: "{\"cells\":{\(cells.joined(separator: ","))}}")
    let name = try #require(try stream.next().json["stream"].text)
    #expect(try server.client.send("GET", "/v1/streams/\(name)/cells").problem == "too-many-bytes")
    #expect(try server.client.send("GET", "/v1/streams/\(name)").problem == "too-many-bytes")
    #expect(try server.client.json("/v1/streams/\(name)/cells/c7")["object"].text == "Employee/7")
  }

  @Test("A large answer reserves its memory as it grows, is refused over the share, and gives it back when it goes")
  func ledger() throws {
    let ledger = MemoryLedger(limit: 5_000_000, clientLimit: 1_000_000)
    let limits = RequestLimits()
    do {
      let budget = ReadingBudget(limits, of: .unknown, in: ledger) { false }
      var bytes: [UInt8] = []
      while bytes.count < 400_000 {
        bytes += [UInt8](repeating: 1, count: 5000)
        try budget.check(bytes)
        // Before the next check, no more than the array's capacity and a little may still be appended.
        #expect(ledger.bytes(for: .responses) + 70_000 > bytes.count)
      }
      let response = budget.settled(Response(status: .ok, body: bytes))
      #expect(response.memory?.byteCount == ledger.total && ledger.total >= 400_000)
    }
    #expect(ledger.total == 0)
    let budget = ReadingBudget(limits, of: .unknown, in: ledger) { false }
    var bytes: [UInt8] = []
    let refusal = #expect(throws: Problem.self) {
      while bytes.count < 4_000_000 {
        bytes += [UInt8](repeating: 1, count: 5000)
        try budget.check(bytes)
      }
    }
    #expect(refusal?.code == .overloaded && refusal?.detail.contains("memory.clientBytes") == true)
    #expect(bytes.count < 1_100_000)
  }
}
