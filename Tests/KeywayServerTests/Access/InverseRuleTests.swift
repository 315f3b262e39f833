import KeyValueModel
import TestKit
import Testing

/// Writes that change objects through the inverse of a relationship (the specification, section 11, "Inverses").
@Suite("Rules and inverses")
struct InverseRuleTests {
  private static let schema = """
    access: { read: 'true', create: identity != null, delete: 'false' }
    entities:
      Person:
        access: { update: user == identity.sub, keys: { tokens: { update: '"clerk" in identity.roles' } } }
        keys:
          user: { type: string }
          posts: { toMany: Post, ordered: true, inverse: author, delete: cascade }
          likes: { toMany: Post, inverse: likers }
          pins: { toMany: Post, inverse: pinners }
          desk: { toOne: Desk, inverse: owner }
          tokens: { toMany: Token, inverse: holder }
      Post:
        access:
          read: '!hidden || author.user == identity.sub'
          update: author.user == identity.sub
          keys: { likers: { inverse: identity != null } }
        keys:
          text: { type: string }
          hidden: { type: boolean, default: false }
          author: { toOne: Person, inverse: posts }
          likers: { toMany: Person, inverse: likes }
          pinners: { toMany: Person, inverse: pins }
      Desk:
        access: { update: owner == null || owner.user == identity.sub }
        keys: { owner: { toOne: Person, inverse: desk } }
      Token:
        access: { update: 'true', keys: { holder: { update: '"clerk" in identity.roles' } } }
        keys: { holder: { toOne: Person, inverse: tokens } }
    """
  private static let objects = [
    ("Person/1", #"{"user":"ann"}"#), ("Person/2", #"{"user":"bob"}"#), ("Person/3", #"{"user":"eve"}"#),
    ("Post/1", #"{"text":"a","author":"Person/1"}"#), ("Post/2", #"{"text":"b","author":"Person/2"}"#),
    ("Post/3", #"{"text":"c","author":"Person/1","hidden":true}"#), ("Post/4", #"{"text":"d"}"#),
    ("Desk/1", #"{"owner":"Person/1"}"#), ("Desk/2", #"{"owner":"Person/2"}"#), ("Desk/3", "{}"),
    ("Token/1", #"{"holder":"Person/1"}"#),
  ]

  private func world() throws -> GuardedServer { try GuardedServer(schema: Self.schema, objects: Self.objects) }

  /// Writes of Bob, each with the status of its response.
  private static let writes: [(method: String, target: String, body: String?, status: Int)] = [
    // Bob cannot take over Ann's post by any form of write.
    ("POST", "Person/2/posts", #""Post/1""#, 403),
    ("POST", "Person/2/posts?index=0", #""Post/1""#, 403),
    ("PUT", "Person/2/posts?index=0", #""Post/1""#, 403),
    ("PUT", "Person/2/posts", #"["Post/2","Post/1"]"#, 403),
    ("PATCH", "Person/2", #"{"posts":["Post/1"]}"#, 403),
    ("PUT", "Person/2", #"{"user":"bob","posts":["Post/1"]}"#, 403),
    ("PUT", "Person/9", #"{"user":"bob","posts":["Post/1"]}"#, 403),
    ("POST", "Person", #"{"posts":["Post/1"]}"#, 403),
    ("PUT", "Post/1/author", #""Person/2""#, 403),
    // Nor can he take a post without an author.
    ("POST", "Person/2/posts", #""Post/4""#, 403),
    // He may not give up his own post: afterwards it would not be his.
    ("DELETE", "Person/2/posts?index=0", nil, 403),
    ("DELETE", "Person/2/posts?object=Post/2", nil, 403),
    ("PUT", "Person/2", #"{"user":"bob"}"#, 403),
    // A to-many that mirrors a to-one needs no permission: he may write a post that is his.
    ("PUT", "Post/9", #"{"author":"Person/2"}"#, 201),
    ("PUT", "Post/9", #"{"author":"Person/1"}"#, 201),
    ("POST", "Person/2/posts", #"{"text":"new"}"#, 200),
    ("POST", "Person/1/posts", #"{"text":"new"}"#, 403),
    // Two to-manys: the far key has a rule of its own, or the rules of both objects are checked.
    ("POST", "Person/2/likes", #""Post/1""#, 200),
    ("POST", "Person/2/likes?operation=set", #"["Post/1","Post/2"]"#, 200),
    ("POST", "Post/1/likers", #""Person/2""#, 403),
    ("POST", "Post/2/likers", #""Person/1""#, 403),
    ("POST", "Post/2/likers", #""Person/2""#, 200),
    ("POST", "Person/2/pins", #""Post/1""#, 403),
    ("POST", "Person/2/pins", #""Post/2""#, 200),
    // One to one: his desk, the new one, and its present owner.
    ("PUT", "Person/2/desk", #""Desk/3""#, 200),
    ("PUT", "Person/2/desk", #""Desk/1""#, 403),
    ("PUT", "Person/2/desk", "null", 200),
    ("PUT", "Desk/2/owner", #""Person/3""#, 403),
    ("PUT", "Desk/3/owner", #""Person/2""#, 200),
    ("PUT", "Desk/9", #"{"owner":"Person/1"}"#, 403),
    ("PUT", "Desk/9", #"{"owner":"Person/2"}"#, 201),
    // The rule of the to-one applies from both sides, even to objects that are created there.
    ("PUT", "Token/1/holder", "null", 403),
    ("POST", "Person/2/tokens", "{}", 403),
    ("PUT", "Token/9", #"{"holder":"Person/2"}"#, 403),
    ("PUT", "Token/9", "{}", 201),
    // Hidden objects do not exist.
    ("POST", "Person/2/posts", #""Post/3""#, 422),
    ("POST", "Person/2/posts", #""Post/99""#, 422),
    ("POST", "Person/2/likes", #""Post/3""#, 422),
  ]

  @Test("A write is asked for every to-one that it changes, whichever side it names, and for far to-manys")
  func writes() throws {
    for row in Self.writes {
      let world = try world()
      let cursor = world.cursor
      let answer = try world.client.send(row.method, "/v1/objects/\(row.target)", world.bob, body: row.body)
      #expect(answer.status == row.status, "\(row): \(answer.text)")
      if row.status >= 400 { #expect(world.cursor == cursor, "\(row)") }
      if row.status == 403 { #expect(answer.problem == "forbidden", "\(row)") }
    }
  }

  @Test("A refusal names the far object, and in a transaction the operation; admins are asked nothing")
  func problems() throws {
    let world = try world()
    let theft = #"{"op":"insert","object":"Person/2","keyPath":"posts","value":["Post/1"]}"#
    let first = #"{"op":"set","object":"Person/2","keyPath":"user","value":"bob"}"#
    func commit(_ operations: String..., by headers: [String: String]) throws -> WireResponse {
      try world.client.send(
        "POST", "/v1/transactions", headers, body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    }
    let refused = try commit(first, theft, by: world.bob).json
    #expect(refused["object"].text == "Post/1" && refused["operation"].whole == 1, "\(refused.json)")
    #expect(try commit(theft, by: world.admin).status == 200)
    // The effects of delete rules need no permission.
    try world.client.must("DELETE", "/v1/objects/Person/1", world.admin)
  }

  @Test("The rules of far sides come before conditions and values")
  func order() throws {
    let world = try world()
    let cursor = world.cursor
    let rows: [(target: String, body: String, headers: [String: String])] = [
      ("Person/2/posts", #"["Post/1"]"#, ["If-Match": "\"x-1\""]),
      ("Person/2/posts", #"["Post/1","Post/99"]"#, [:]),
      ("Person/2/desk", #""Desk/1""#, ["If-Match": "\"x-1\""]),
      ("Person/2", #"{"user":7,"posts":["Post/1"]}"#, [:]),
    ]
    for (target, body, headers) in rows {
      let answer = try world.client.send(
        "PUT", "/v1/objects/\(target)", world.bob.merging(headers) { $1 }, body: body)
      #expect(answer.problem == "forbidden", "\(target) \(body): \(answer.text)")
    }
    #expect(world.cursor == cursor)
  }

  @Test("A refusal about a far object that the writer may not read does not name it")
  func hidden() throws {
    let schema = """
      access: { read: 'true', create: 'true', delete: 'true' }
      entities:
        Seat:
          access: { update: 'true', keys: { guest: { read: '"host" in identity.roles' } } }
          keys: { guest: { toOne: Guest, inverse: seat } }
        Guest:
          access: { read: '!secret', update: '!secret' }
          keys: { secret: { type: boolean, default: false }, seat: { toOne: Seat, inverse: guest } }
        Strict:
          access: { update: 'true', read: '!secret' }
          keys:
            secret: { type: boolean, default: false }
            pass: { toOne: Pass, inverse: strict, optional: false }
        Pass:
          access: { update: 'true' }
          keys: { strict: { toOne: Strict, inverse: pass } }
      """
    let world = try GuardedServer(
      schema: schema,
      objects: [
        ("Seat/1", "{}"), ("Guest/1", #"{"secret":true,"seat":"Seat/1"}"#), ("Guest/2", "{}"), ("Pass/1", "{}"),
        ("Strict/1", #"{"secret":true,"pass":"Pass/1"}"#), ("Pass/2", "{}"), ("Strict/2", #"{"pass":"Pass/2"}"#),
      ])
    let taken = try world.client.send("PUT", "/v1/objects/Guest/2/seat", world.bob, body: #""Seat/1""#)
    #expect(taken.problem == "forbidden" && taken.json["object"].text == "Guest/2", "\(taken.text)")
    #expect(!taken.text.contains("Guest/1"), "\(taken.text)")
    let missed = try world.client.send("PUT", "/v1/objects/Strict/2/pass", world.bob, body: #""Pass/1""#)
    #expect(missed.problem == "null-not-allowed" && !missed.text.contains("Strict/1"), "\(missed.text)")
  }
}
