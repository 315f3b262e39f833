import Foundation
import Glibc
import Support
import TestKit

/// All attacks of the neighbour.
enum AttackTable {
  /// The attacks in the order of the report. The first is for comparison, the last a mixture of the others.
  static let all: [any Attack] = [ProcessorAttack()] + single + [MixedAttack(attacks: single)]

  /// Returns the attacks with the given names, or all if there are none; nil if a name is unknown.
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
    RequestAttack(name: "sort", summary: "sorts by, filters by and reads sums over to-many relationships") { random in
      switch Int.random(in: 0..<4, using: &random) {
      case 0: get("Employee", ["sort": "department.totalSalary", "limit": "1"])
      case 1: get("Employee", ["filter": "department.totalSalary > 1.0", "limit": "1"])
      case 2: get("Employee", ["section": "department.totalSalary", "aggregate": "@sum.department.totalSalary"])
      default: get("Department/1/employees.department.employees.lastName", [:])
      }
    },
    RequestAttack(name: "filter", summary: "fetches with filters that take long to evaluate") { random in
      get("Employee", ["filter": costly(&random), "limit": "1"])
    },
    RequestAttack(name: "pages", summary: "begins fetches of many pages without fetching the pages") { _ in
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
    StreamAttack(name: "openings", summary: "opens live queries of 10,000 rows with an expensive sort order") {
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

  /// Returns a filter that differs each time and takes many steps to evaluate.
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

/// An attack of the neighbour on the others: a row of the table of attacks.
protocol Attack: Sendable {
  /// Its name on the command line and in the report.
  var name: String { get }
  /// A description of the neighbour's actions, as a verb phrase.
  var summary: String { get }

  /// Performs one step: a request or a connection. Called again and again, on several threads at once, until the attack
  /// is over.
  func step(_ neighbour: Neighbour, _ random: inout SplitMix64)
}

/// An attack with requests that cost more than they seem to.
private struct RequestAttack: Attack {
  let name: String
  let summary: String
  /// Returns one of the requests.
  let request: @Sendable (_ random: inout SplitMix64) -> WireRequest

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    neighbour.send(request(&random))
  }
}

/// An attack that opens streams and never reads from them.
private struct StreamAttack: Attack {
  let name: String
  let summary: String
  /// Returns the path of a stream.
  let target: @Sendable (_ neighbour: Neighbour, _ random: inout SplitMix64) -> String
  /// Returns a write that is made now and then so that the streams have changes to report; nil for no writes.
  var write: (@Sendable (_ random: inout SplitMix64) -> WireRequest)?

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    if let write, random.chance(10) {
      neighbour.send(write(&random))
    } else {
      neighbour.holdStream(target(neighbour, &random))
    }
  }
}

/// An attack that fills the store until writes are refused, makes some room, and goes on.
private struct FillAttack: Attack {
  let name = "filling"
  let summary = "puts objects of 1 MB, some with nested arrays, until they are refused, deletes some, and continues"

  /// On average, one refusal in `patience` is followed by `deletions` deletions.
  private static let patience = 4
  private static let deletions = 3

  private struct Progress {
    var next = 0
    var taken: [Int] = []
  }

  private let progress = Locked(Progress())

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    let number = progress.withLock { progress in
      progress.next += 1
      return progress.next
    }
    let body = Self.bodies[number % Self.bodies.count]
    if neighbour.send(.setting(Self.path(number), body)) == 201 {
      return progress.withLock { $0.taken.append(number) }
    }
    guard Int.random(in: 0..<Self.patience, using: &random) == 0 else { return }
    for _ in 0..<Self.deletions {
      guard let number = progress.withLock({ $0.taken.popLast() }) else { return }
      neighbour.send(WireRequest("DELETE", Self.path(number)))
    }
  }

  private static func path(_ number: Int) -> String { "/v1/objects/Big/f\(number)" }

  /// Bodies of nearly a megabyte: a text, lists and objects that take many times as much memory, and many members.
  private static let bodies = [
    "{\"text\":\"\(String(repeating: "x", count: NeighbourWorld.longText))\"}",
    "{\"data\":[\(Array(repeating: "[]", count: 330_000).joined(separator: ","))]}",
    "{\"data\":[\(Array(repeating: "{}", count: 330_000).joined(separator: ","))]}",
    "{\"data\":{\((0..<60_000).map { "\"k\($0)\":\($0)" }.joined(separator: ","))}}",
  ]
}

/// An attack that requests long answers and does not read them.
private struct UnreadAttack: Attack {
  let name = "unread"
  let summary = "requests answers of 1 MB on many connections, and reads none"

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    let request = WireRequest("GET", "/v1/objects/Big/1")
    neighbour.hold(
      Array(request.text(to: neighbour.address).utf8), answers: false, receiveBufferBytes: 4_096)
  }
}

/// An attack that sends incomplete bodies.
private struct BodyAttack: Attack {
  let name = "bodies"
  let summary = "sends 1 MB of a body on many connections, and never the last byte"

  private static let body = [UInt8](repeating: UInt8(ascii: " "), count: 1_000_000)

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    let head =
      "PUT /v1/objects/Big/4 HTTP/1.1\r\nHost: \(neighbour.address.hostField)\r\n"
      + "Content-Type: application/json\r\nContent-Length: \(Self.body.count + 1)\r\n\r\n"
    neighbour.hold(Array(head.utf8) + Self.body, answers: false)
  }
}

/// An attack that opens connections and does nothing with them.
private struct ConnectionAttack: Attack {
  let name = "connections"
  let summary = "opens as many connections as it can, and sends half a request on each"

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    neighbour.hold(Array("GET /v1/status HTTP/1.1\r\nHost: ".utf8), answers: false)
  }
}

/// An attack that binds many cells to one long text, and writes it.
private struct CellAttack: Attack {
  let name = "cells"
  let summary = "binds 100 cells, 64 times each, to one text of 1 MB, and writes that text"

  private static let cells: String = {
    let paths = Array(repeating: #""text""#, count: 64).joined(separator: ",")
    let cells = (0..<100).map { #""c\#($0)":{"object":"Big/1","keyPaths":[\#(paths)]}"# }
    return #"{"cells":{\#(cells.joined(separator: ","))}}"#
  }()
  private static let text = "\"" + String(repeating: "y", count: NeighbourWorld.longText) + "\""

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    if random.chance(50) {
      neighbour.send(.setting("/v1/objects/Big/1/text", Self.text))
    } else {
      let request = WireRequest("POST", "/v1/streams", ["Accept": "text/event-stream"], body: Self.cells)
      neighbour.hold(Array(request.text(to: neighbour.address).utf8), answers: true)
    }
  }
}

/// An attack with streams of 1,000 cells on aggregates of the large department's employees: distinct names, which are
/// recomputed from all of them, and the minimum and the maximum.
private struct AggregateAttack: Attack {
  let name: String
  let summary: String
  /// The percentage of steps that rename an employee instead of opening a stream.
  let writePercent: Int
  /// The options of the cells.
  let options: String

  /// Keeps streams with such cells, and renames employees: each commit affects all cells.
  static let observing = AggregateAttack(
    name: "aggregates", summary: "binds 1,000 cells to aggregates of a large collection, and renames its members",
    writePercent: 90, options: #"["old","new"]"#)

  /// Opens one such stream after the other: each begins with all values.
  static let opening = AggregateAttack(
    name: "opening", summary: "opens streams of 1,000 cells that begin with aggregates of a large collection",
    writePercent: 0, options: #"["initial","old","new"]"#)

  private func cells() -> String {
    let paths = ["@distinctUnionOfObjects.lastName", "@max.salary", "@min.salary", "@max.lastName"]
    let cells = (0..<1_000).map { number in
      #""c\#(number)":{"object":"Department/1","keyPaths":["employees.\#(paths[number % paths.count])"],"#
        + #""options":\#(options)}"#
    }
    return #"{"cells":{\#(cells.joined(separator: ","))}}"#
  }

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    if random.chance(writePercent), neighbour.heldCount > 0 {
      let employee = Int.random(in: 0..<1_000, using: &random)
      neighbour.send(
        .setting("/v1/objects/Employee/\(employee)/lastName", "\"R\(Int.random(in: 0..<100, using: &random))\""))
    } else {
      let request = WireRequest("POST", "/v1/streams", ["Accept": "text/event-stream"], body: cells())
      neighbour.hold(Array(request.text(to: neighbour.address).utf8), answers: true)
    }
  }
}

/// An attack with almost valid HTTP.
private struct NoiseAttack: Attack {
  let name = "noise"
  let summary = "sends requests with some bytes changed, on a connection each"

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    let request = WireRequest("PATCH", "/v1/objects/Big/4", body: #"{"data":[1,{"a":"b"}]}"#)
    var bytes = Array(request.text(to: neighbour.address).utf8)
    for _ in 0..<Int.random(in: 1...8, using: &random) {
      bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
    }
    neighbour.hold(bytes, answers: false)
  }
}

/// Not an attack: it sends no requests, and shows what it costs the others if a program on the same machine uses the
/// processors as much as an attacker does.
private struct ProcessorAttack: Attack {
  let name = "processors"
  let summary = "keeps the processors busy and sends no requests, for comparison"

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    for _ in 0..<10_000 { _ = random.next() }
  }
}

/// An attack that performs steps of all others at random.
private struct MixedAttack: Attack {
  let name = "mixture"
  let summary = "does all of the above, at random"
  /// The attacks that it chooses from.
  let attacks: [any Attack]

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    attacks.randomElement(using: &random)?.step(neighbour, &random)
  }
}
