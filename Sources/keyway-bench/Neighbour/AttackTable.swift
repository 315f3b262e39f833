import Foundation
import TestKit

/// Everything that the neighbour can do.
enum AttackTable {
  /// The attacks in the order of the report; the first is for comparison, the last a mixture
  /// of the others.
  static let all: [any Attack] = [ProcessorAttack()] + single + [MixedAttack(attacks: single)]

  /// Those of that name; all where none is named. Nil where a name is unknown.
  static func named(_ names: [String]) -> [any Attack]? {
    guard !names.isEmpty else { return all }
    let found = names.compactMap { name in all.first { $0.name == name } }
    return found.count == names.count ? found : nil
  }

  private static let single: [any Attack] =
    reads + writes + streams + [
      FillAttack(), UnreadAttack(), BodyAttack(), ConnectionAttack(), CellAttack(),
      AggregateAttack.observing, AggregateAttack.opening, NoiseAttack(),
    ]

  private static let reads: [any Attack] = [
    RequestAttack(name: "expand", summary: "reads 180 employees that expand each other, one with a text of 1 MB") { _ in
      get("Department/2", ["expand": "employees.department.employees.department.head"])
    },
    RequestAttack(name: "links", summary: "reads 1,000 objects that all expand one text of 1 MB") { _ in
      get("Link", ["expand": "big", "limit": "1000"])
    },
    RequestAttack(name: "sort", summary: "sorts by, filters by and reads sums behind to-manys") { random in
      switch Int.random(in: 0..<4, using: &random) {
      case 0: get("Employee", ["sort": "department.totalSalary", "limit": "1"])
      case 1: get("Employee", ["filter": "department.totalSalary > 1.0", "limit": "1"])
      case 2: get("Employee", ["section": "department.totalSalary", "aggregate": "@sum.department.totalSalary"])
      default: get("Department/1/employees.department.employees.lastName", [:])
      }
    },
    RequestAttack(name: "filter", summary: "fetches by filters that take long") { random in
      get("Employee", ["filter": costly(&random), "limit": "1"])
    },
    RequestAttack(name: "pages", summary: "begins fetches of many pages and fetches none of them") { _ in
      get("Employee", ["limit": "1"])
    },
  ]

  private static let writes: [any Attack] = [
    RequestAttack(name: "copy", summary: "copies 900 kB within an object 600 times, by one JSON Patch") { _ in
      patch("Big/2", Array(repeating: #"{"op":"copy","from":"/data/a","path":"/data/b/-"}"#, count: 600))
    },
    RequestAttack(name: "patch", summary: "patches an array of 490,000 numbers 1,000 times at once") { _ in
      patch(
        "Big/3", (0..<1_000).map { #"{"op":"\#($0 % 2 == 0 ? "add" : "replace")","path":"/data/0","value":\#($0)}"# })
    },
    RequestAttack(name: "idempotency", summary: "writes with a new Idempotency-Key each time") { random in
      var request = WireRequest(
        "POST", "/v1/transactions",
        body: #"{"operations":[{"op":"set","object":"Big/4","keyPath":"text","value":"\#(padding)"}]}"#)
      request.headers["Idempotency-Key"] = "\(UInt64.random(in: .min ... .max, using: &random))"
      return request
    },
    RequestAttack(name: "writes", summary: "writes as fast as it can") { random in
      .setting("/v1/objects/Employee/\(Int.random(in: 0..<1_000, using: &random))/salary", "\(random.next() % 1_000)")
    },
  ]

  private static let streams: [any Attack] = [
    StreamAttack(name: "streams", summary: "opens as many streams as it can, and reads none") { _, _ in
      NeighbourWorld.path(note: 0)
    },
    StreamAttack(
      name: "queries", summary: "opens 2,000 live queries with costly filters, and writes what they read",
      target: { _, random in
        let number = Int.random(in: 0..<1_000_000, using: &random)
        return target("Department", ["filter": "employees.map(e, e.salary * 1.1).exists(s, s == \(number).0)"])
      }, write: { .setting("/v1/objects/Employee/1/salary", "\($0.next() % 1_000)") }),
    StreamAttack(name: "openings", summary: "opens live queries of 10,000 rows, sorted by what takes long") {
      _, random in
      target("Employee", ["filter": costly(&random), "sort": "lastName,-salary"])
    },
    StreamAttack(name: "replays", summary: "resumes streams from the oldest state, with long contexts") {
      neighbour, random in
      let context = String(repeating: "c", count: 1_000)
      let note = Int.random(in: 0..<10, using: &random)
      return "/v1/objects/Note/n\(note)/text?since=\(neighbour.epoch)-\(1 + random.next() % 100)&context=\(context)"
    },
  ]

  private static let padding = String(repeating: "p", count: 10_000)

  /// A filter that differs each time and takes many steps.
  private static func costly(_ random: inout SplitMix64) -> String {
    "lastName.matches('^(L|[0-9])*\(Int.random(in: 0..<1_000_000, using: &random))$') || salary >= 0.0"
  }

  private static func target(_ path: String, _ query: KeyValuePairs<String, String>) -> String {
    let pairs = query.map { name, value in
      "\(name)=\(value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")"
    }
    return "/v1/objects/\(path)" + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
  }

  private static func get(_ path: String, _ query: KeyValuePairs<String, String>) -> WireRequest {
    WireRequest("GET", target(path, query))
  }

  private static func patch(_ path: String, _ operations: [String]) -> WireRequest {
    WireRequest(
      "PATCH", "/v1/objects/\(path)", ["Content-Type": "application/json-patch+json"],
      body: "[\(operations.joined(separator: ","))]")
  }
}
