import KeyValueModel
import KeyValueObserving
import KeywayClient
import KeywayServer
import Store
import TestKit
import Testing

/// The data of the tests of live queries.
enum Staff {
  static let schema = """
    entities:
      Employee:
        keys:
          name: { type: string }
          salary: { type: number }
          department: { toOne: Department, inverse: employees }
          tags: { type: json }
        display: [name, salary]
      Manager:
        extends: Employee
        keys:
          level: { type: integer }
      Department:
        keys:
          name: { type: string }
          employees: { toMany: Employee, inverse: department, ordered: true }
          total: { type: number, computed: employees.@sum.salary }
        display: [name, total]
    """

  static let objects = [
    ("Department/1", #"{"name":"Engines"}"#),
    ("Department/2", #"{"name":"Looms"}"#),
    ("Employee/1", #"{"name":"Ada","salary":30,"department":"Department/1"}"#),
    ("Employee/2", #"{"name":"Bob","salary":10,"department":"Department/2"}"#),
    ("Employee/3", #"{"name":"Cy","salary":20,"department":"Department/1"}"#),
    ("Employee/4", #"{"name":"Di","salary":15}"#),
    ("Manager/5", #"{"name":"Eve","salary":12,"department":"Department/2","level":3}"#),
  ]

  static func server(_ configure: (inout KeywayServer.Configuration) -> Void = { _ in }) throws -> TestServer {
    try TestServer(schema: schema, objects: objects, configure)
  }

  /// Returns the URL of a query: an entity's objects with these parameters.
  static func target(_ entity: String = "Employee", _ parameters: KeyValuePairs<String, String> = [:]) -> String {
    let query = parameters.map { "\($0)=\(encoded($1))" }.joined(separator: "&")
    return "/v1/objects/\(entity)" + (query.isEmpty ? "" : "?\(query)")
  }

  /// Percent-encodes a text for a URL's query.
  static func encoded(_ text: String) -> String {
    text.utf8.map { byte in
      switch UInt8(byte) {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: ","), UInt8(ascii: "-"):
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }.joined()
  }
}

extension TestServer {
  /// The number of different live queries that are watched.
  var openQueries: Int { server.store.withPublication { $0.queries.count } }
}

extension LiveList {
  /// Applies an event from the wire.
  mutating func apply(_ event: WireEvent) throws {
    try apply(ServerSentEvent(id: event.id ?? "", event: event.name ?? "", data: event.data ?? ""))
  }

  /// The objects, in order.
  var names: [String] { rows.map(\.reference.text) }

  /// The rows without their revisions, which change without an event if no shown key changes.
  var values: [Value] { rows.map { Value.object($0.value).withoutRevision } }
}

extension Value {
  /// An object without its `@revision`.
  var withoutRevision: Value {
    guard case .object(var object) = self else { return self }
    object["@revision"] = nil
    return .object(object)
  }
}
