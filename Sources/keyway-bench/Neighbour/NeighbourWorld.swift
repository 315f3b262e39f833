import Foundation
import TestKit

/// The objects of the benchmark: what the others use, and what makes attacks dear.
struct NeighbourWorld {
  /// The schema of the server.
  static let schema = """
    entities:
      Note:
        keys:
          text: { type: string }
      Big:
        keys:
          text: { type: string }
          data: { type: json }
      Link:
        keys:
          name: { type: string }
          big: { toOne: Big }
      Employee:
        keys:
          lastName: { type: string }
          salary: { type: number, default: 0 }
          note: { type: string }
          department: { toOne: Department, inverse: employees }
      Department:
        keys:
          name: { type: string }
          employees: { toMany: Employee, ordered: true, inverse: department }
          head: { toOne: Employee }
          totalSalary: { type: number, computed: "employees.@sum.salary" }

    """

  /// How many objects a transaction makes.
  private static let batch = 4_000
  /// How many characters the longest text has: a little less than the body of a request.
  static let longText = 1_000_000

  /// How many employees the large department has.
  let employees: Int
  /// How many notes the others write and observe.
  let notes: Int

  /// The path of the text of a note.
  static func path(note: Int) -> String { "/v1/objects/Note/n\(note)/text" }

  /// Makes all objects.
  func fill(_ connection: WireConnection) throws {
    for note in 0..<notes { try connection.must(.setting("/v1/objects/Note/n\(note)", #"{"text":""}"#)) }
    let long = String(repeating: "x", count: Self.longText)
    try connection.must(.setting("/v1/objects/Big/1", #"{"text":"\#(long)"}"#))
    try connection.must(
      .setting("/v1/objects/Big/2", #"{"data":{"a":"\#(long.dropLast(Self.longText / 10))","b":[]}}"#))
    let zeros = String(repeating: "0,", count: 490_000).dropLast()
    try connection.must(.setting("/v1/objects/Big/3", "{\"data\":[\(zeros)]}"))
    for department in 1...2 { try connection.must(.setting("/v1/objects/Department/\(department)", "{}")) }
    try create(1_000, connection) { #""object":"Link/\#($0)","value":{"name":"\#($0)","big":"Big/1"}"# }
    try create(employees, connection) {
      #""object":"Employee/\#($0)","value":{"lastName":"L\#($0 % 97)","salary":\#($0),"department":"Department/1"}"#
    }
    try create(180, connection) {
      #""object":"Employee/s\#($0)","value":{"lastName":"S","salary":1,"department":"Department/2"}"#
    }
    try connection.must(.setting("/v1/objects/Employee/s0/note", "\"\(long)\""))
    try connection.must(.setting("/v1/objects/Department/2/head", #""Employee/s0""#))
  }

  private func create(_ count: Int, _ connection: WireConnection, _ members: (Int) -> String) throws {
    for first in stride(from: 0, to: count, by: Self.batch) {
      let operations = (first..<min(first + Self.batch, count)).map { "{\"op\":\"create\",\(members($0))}" }
      try connection.must(
        WireRequest("POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}"))
    }
  }
}
