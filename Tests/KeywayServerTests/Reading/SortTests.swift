import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Sort orders of fetches")
struct SortTests {
  /// A sort key in Swift: the lesser one comes first. Null is less than everything.
  enum Rank: Comparable {
    case null
    case flag(Int)
    case number(Double)
    case text([UInt8])

    static func < (left: Rank, right: Rank) -> Bool {
      switch (left, right) {
      case (.null, .null): false
      case (.null, _): true
      case (.flag(let one), .flag(let other)): one < other
      case (.number(let one), .number(let other)): one < other
      case (.text(let one), .text(let other)): one.lexicographicallyPrecedes(other)
      default: false
      }
    }
  }

  struct Column: Sendable {
    let path: String
    let rank: @Sendable (Value, FetchWorld) -> Rank

    init(_ path: String, _ rank: @escaping @Sendable (Value, FetchWorld) -> Rank) {
      (self.path, self.rank) = (path, rank)
    }
  }

  private static func text(_ value: Value) -> Rank { value.text.map { .text(Array($0.utf8)) } ?? .null }
  private static func number(_ value: Value) -> Rank { value.double.map(Rank.number) ?? .null }

  static let columns = [
    Column("name") { object, _ in text(object["name"]) },
    Column("born") { object, _ in FetchWorld.seconds(object["born"]).map { .number(Double($0)) } ?? .null },
    Column("salary") { object, _ in number(object["salary"]) },
    Column("level") { object, _ in number(object["level"]) },
    Column("active") { object, _ in
      object["active"].isNull ? .null : .flag(object["active"] == .bool(true) ? 1 : 0)
    },
    Column("doubled") { object, _ in object["salary"].double.map { .number($0 * 2) } ?? .null },
    Column("department") { object, _ in text(object["department"]) },
    Column("department.name") { object, world in text(world.object(object["department"])["name"]) },
    Column("department.head.name") { object, world in
      text(world.object(world.object(object["department"])["head"])["name"])
    },
    Column("department.totalSalary") { object, world in number(world.object(object["department"])["totalSalary"]) },
    Column("department.employees.@count") { object, world in
      object["department"].isNull
        ? .null : .number(Double(world.object(object["department"])["employees"].items.count))
    },
    Column("boss.born") { object, world in
      FetchWorld.seconds(world.object(object["boss"])["born"]).map { .number(Double($0)) } ?? .null
    },
  ]

  /// Sorts references by these columns, independently of the server.
  private func sorted(_ references: [String], _ world: FetchWorld, _ columns: [(Column, isDescending: Bool)])
    -> [String]
  {
    let ranked = references.map { reference in
      (reference, columns.map { $0.0.rank(world.object(.string(reference)), world) })
    }
    return ranked.sorted { left, right in
      for (index, column) in columns.enumerated() where left.1[index] != right.1[index] {
        return column.isDescending ? right.1[index] < left.1[index] : left.1[index] < right.1[index]
      }
      return left.0.utf8.lexicographicallyPrecedes(right.0.utf8)
    }.map(\.0)
  }

  @Test("Each key path sorts as sorting by hand does, ascending and descending, null first and null last")
  func singles() throws {
    let world = try FetchWorld(seed: seed)
    let references = world.references(["Employee", "Manager"])
    for column in Self.columns {
      for isDescending in [false, true] {
        let sort = (isDescending ? "-" : "") + column.path
        #expect(
          try world.fetch("Employee", sort: sort) == sorted(references, world, [(column, isDescending)]),
          "\(sort), seed \(seed)")
      }
    }
  }

  @Test("Several key paths sort one after the other, and what is equal in all of them by reference, also when filtered")
  func several() throws {
    var random = SplitMix64(seed: seed)
    for round in 0..<3 {
      let world = try FetchWorld(seed: seed &+ UInt64(round))
      let references = world.references(["Employee", "Manager"])
      for _ in 0..<20 {
        let columns = Self.columns.shuffled(using: &random).prefix(Int.random(in: 2...4, using: &random))
          .map { ($0, isDescending: Bool.random(using: &random)) }
        let sort = columns.map { ($0.isDescending ? "-" : "") + $0.0.path }.joined(separator: ",")
        let expected = sorted(references, world, columns)
        #expect(try world.fetch("Employee", sort: sort) == expected, "\(sort), seed \(seed), round \(round)")
        let active = expected.filter { world.object(.string($0))["active"] == .bool(true) }
        #expect(try world.fetch("Employee", filter: "active", sort: sort) == active, "\(sort), seed \(seed)")
      }
    }
  }

  @Test("Equal sort keys are ordered by reference in both directions")
  func equal() throws {
    let server = try TestServer(
      schema: FetchWorld.schema,
      objects: ["Person/b", "Manager/a", "Person/B", "Person/a1", "Employee/z"].map { ($0, #"{"name":"x"}"#) })
    for sort in ["name", "-name", "-born,name"] {
      let answer = try server.client.json("/v1/objects/Person?sort=\(sort)")
      #expect(
        answer["objects"].items.map { $0["@ref"].text } == [
          "Employee/z", "Manager/a", "Person/B", "Person/a1", "Person/b",
        ])
    }
  }

  static let mistakes: [(sort: String, status: Int, code: String)] = [
    ("nope", 404, "undefined-key"), ("name,nope", 404, "undefined-key"), ("department.nope", 404, "undefined-key"),
    ("name.x", 404, "undefined-key"), ("boss.salary", 404, "undefined-key"),
    ("department.employees", 422, "invalid-value"), ("department.employees.name", 422, "invalid-value"),
    ("department.employees.@unionOfObjects.name", 422, "invalid-value"), ("department.words", 422, "invalid-value"),
    ("department.employees.@frobnicate", 400, "malformed-key-path"),
    ("department.employees.@sum", 400, "malformed-key-path"), ("", 400, "malformed-key-path"),
    ("-", 400, "malformed-key-path"), ("name,", 400, "malformed-key-path"), ("--name", 400, "malformed-key-path"),
    (" name", 400, "malformed-key-path"), ("name..x", 400, "malformed-key-path"),
    ("department.name.@count", 422, "not-a-collection"),
  ]

  @Test("A mistaken sort says what is wrong with its key path", arguments: mistakes)
  func mistake(_ sort: String, _ status: Int, _ code: String) throws {
    let server = try TestServer(schema: FetchWorld.schema, objects: [])
    let response = try server.client.send("GET", "/v1/objects/Employee?sort=" + sort.queryEncoded)
    #expect(response.status == status, "\(response.text)")
    #expect(response.problem == code, "\(response.text)")
  }
}
