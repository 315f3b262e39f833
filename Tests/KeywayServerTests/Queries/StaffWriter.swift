import KeyValueModel
import TestKit

/// A random writer: each call is one commit to the data of `Staff`.
struct StaffWriter {
  private let server: TestServer
  private let count: Int
  /// Objects that are never deleted.
  var keeps: Set<String> = []
  /// The length of the texts that some keys are set to.
  var textBytes = 1

  /// Creates a writer of objects numbered below `count`.
  init(_ server: TestServer, objects count: Int = 12) {
    self.server = server
    self.count = count
  }

  mutating func write(_ random: inout SplitMix64) throws {
    let headers = Int.random(in: 0..<4, using: &random) == 0 ? ["Keyway-Writer": "w"] : [:]
    let operations = (0..<max(1, Int.random(in: -3...3, using: &random))).map { _ in operation(&random) }
    let body = "{\"operations\":[\(operations.joined(separator: ","))]}"
    // Some fail, such as a second creation: they change nothing.
    let response = try server.client.send("POST", "/v1/transactions", headers, body: body)
    guard response.status >= 500 || response.problem == "malformed-json" else { return }
    throw LoopbackError(.unexpectedStatus(response.status), response.text)
  }

  private func operation(_ random: inout SplitMix64) -> String {
    let number = Int.random(in: 1..<count, using: &random)
    let employee = number == 5 ? "Manager/5" : "Employee/\(number)"
    let department = "Department/\(Int.random(in: 1...3, using: &random))"
    let salary = Bool.random(using: &random) ? "null" : "\(Int.random(in: 5..<30, using: &random))"
    switch Int.random(in: 0..<12, using: &random) {
    case 0:
      let digit = "\(Int.random(in: 0..<10, using: &random))"
      return set(employee, "tags", "\"\(String(repeating: digit, count: textBytes))\"")
    case 1, 2: return set(employee, "salary", "\(Int.random(in: 5..<30, using: &random))")
    case 3: return set(employee, "salary", salary)
    case 4: return set(employee, "name", "\"n\(Int.random(in: 0..<6, using: &random))\"")
    case 5: return set(employee, "department", Bool.random(using: &random) ? "null" : "\"\(department)\"")
    case 6: return set(department, "name", "\"d\(Int.random(in: 0..<3, using: &random))\"")
    case 7 where !keeps.contains(employee): return #"{"op":"delete","object":"\#(employee)"}"#
    case 8 where !keeps.contains(department): return #"{"op":"delete","object":"\#(department)"}"#
    case 9, 7: return #"{"op":"create","object":"\#(employee)","value":{"salary":\#(salary),"name":"new"}}"#
    case 10, 8: return #"{"op":"create","object":"\#(department)","value":{"name":"d\#(number % 3)"}}"#
    default: return #"{"op":"insert","object":"\#(department)","keyPath":"employees","value":["\#(employee)"]}"#
    }
  }

  private func set(_ object: String, _ keyPath: String, _ value: String) -> String {
    #"{"op":"set","object":"\#(object)","keyPath":"\#(keyPath)","value":\#(value)}"#
  }
}
