import KeyValueModel
import TestKit
import Testing

/// A lifetime is a deletion (the specification, section 11, "Leases").
@Suite("Rules and lifetimes")
struct LifetimeRuleTests {
  private static let schema = """
    entities:
      Note:
        access:
          read: 'true'
          create: 'true'
          update: 'true'
          delete: owner == identity.sub
        keys: { owner: { type: string }, text: { type: string } }
    """

  private func world() throws -> GuardedServer {
    let world = try GuardedServer(schema: Self.schema, objects: [("Note/1", #"{"owner":"ann"}"#)])
    try world.client.must(
      "PUT", "/v1/objects/Note/2", world.admin.merging(["Keyway-Lifetime": "60"]) { $1 }, body: #"{"owner":"ann"}"#)
    return world
  }

  /// The statuses of writes with a lifetime for Bob, who may update every note, and for Ann, who may delete these.
  private static let writes: [(method: String, target: String, lifetime: String, body: String, answers: [Int])] = [
    ("PATCH", "Note/1", "1", "{}", [403, 200]),
    ("PUT", "Note/1", "1", #"{"owner":"ann"}"#, [403, 200]),
    ("PUT", "Note/1", "1", #"{"owner":"bob"}"#, [403, 200]),
    ("PATCH", "Note/1", "none", "{}", [200, 200]),
    ("PATCH", "Note/2", "60", "{}", [200, 200]),
    ("PATCH", "Note/2", "59", "{}", [403, 200]),
    ("PATCH", "Note/2", "61", "{}", [403, 200]),
    ("PATCH", "Note/2", "none", "{}", [200, 200]),
    ("PUT", "Note/9", "60", #"{"owner":"ann"}"#, [403, 201]),
    ("PUT", "Note/9", "60", #"{"owner":"bob"}"#, [201, 403]),
    ("PUT", "Note/9", "none", #"{"owner":"ann"}"#, [201, 201]),
    ("POST", "Note", "60", #"{"owner":"ann"}"#, [403, 201]),
  ]

  @Test("A lifetime needs 'delete', except to renew the seconds that are there; 'none' needs 'update' alone")
  func writes() throws {
    for row in Self.writes {
      for (position, status) in row.answers.enumerated() {
        let world = try world()
        let cursor = world.cursor
        let headers = [world.bob, world.ann][position].merging(["Keyway-Lifetime": row.lifetime]) { $1 }
        let answer = try world.client.send(row.method, "/v1/objects/\(row.target)", headers, body: row.body)
        #expect(answer.status == status, "\(row) \(position): \(answer.text)")
        guard status == 403 else { continue }
        #expect(answer.problem == "forbidden" && world.cursor == cursor, "\(answer.text)")
        #expect(!answer.json.has("operation"), "\(answer.text)")
      }
    }
  }

  @Test("In transactions as well, with the operation; and a lifetime of a stream")
  func transactions() throws {
    let world = try world()
    func commit(_ operations: [String], _ headers: [String: String]) throws -> WireResponse {
      try world.client.send(
        "POST", "/v1/transactions", headers, body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    }
    let plain = #"{"op":"patch","object":"Note/1","value":{"text":"x"}}"#
    let leased = #"{"op":"patch","object":"Note/1","value":{},"lifetime":1}"#
    let made = #"{"op":"create","object":"Note/8","value":{"owner":"ann"},"lifetime":60}"#
    let refused = try commit([plain, leased], world.bob)
    #expect(refused.problem == "forbidden" && refused.json["operation"].whole == 1, "\(refused.text)")
    let refusedMade = try commit([plain, made], world.bob)
    #expect(refusedMade.problem == "forbidden" && refusedMade.json["operation"].whole == 1, "\(refusedMade.text)")
    #expect(try commit([made], world.ann).status == 200)
    // A failed condition is reported after the rules.
    let stale = #"{"op":"require","object":"Note/1","revision":0}"#
    #expect(try commit([leased, stale], world.bob).problem == "forbidden")
    #expect(try commit([made.replacing("Note/8", with: "Note/7"), stale], world.bob).problem == "forbidden")
    for (headers, status) in [(world.bob, 403), (world.ann, 200)] {
      let stream = try world.client.stream("/v1/streams", headers)
      let name = try stream.next().json["stream"].text ?? ""
      let answer = try world.client.send(
        "PATCH", "/v1/objects/Note/1", headers.merging(["Keyway-Lifetime": "stream=\(name)"]) { $1 }, body: "{}")
      #expect(answer.status == status, "\(answer.text)")
      stream.socket.close()
    }
  }
}
