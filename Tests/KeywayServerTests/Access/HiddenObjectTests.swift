import KeyValueModel
import TestKit
import Testing

/// An object that may not be read does not exist for the client: each request has the same response as if it had never
/// existed.
@Suite("Objects that may not be read") struct HiddenObjectTests {
  private typealias Request = (method: String, target: String, headers: [String: String], body: String?)

  /// Requests to `Account/N`, which stands for `Account/2`, which Ann may not read, or for `Account/9`, which does not
  /// exist.
  private static let requests: [Request] = [
    ("GET", "Account/N", [:], nil), ("GET", "Account/N/balance", [:], nil), ("GET", "Account/N/nothing", [:], nil),
    ("GET", "Account/N", ["Accept": "text/event-stream"], nil), ("GET", "Account/N", ["If-None-Match": "*"], nil),
    ("PATCH", "Account/N", [:], "{}"), ("PATCH", "Account/N", [:], #"{"nothing":1}"#),
    ("PATCH", "Account/N", [:], #"{"code":"x"}"#), ("PATCH", "Account/N", ["If-Match": #""x""#], "{}"),
    ("PATCH", "Account/N", ["If-Match": "*"], "{}"), ("PATCH", "Account/N", ["If-None-Match": "*"], "{}"),
    ("PATCH", "Account/N", ["Keyway-Lifetime": "60"], "{}"), ("DELETE", "Account/N", [:], nil),
    ("DELETE", "Account/N", ["If-Match": #""x""#], nil), ("PUT", "Account/N/balance", [:], "1"),
    ("PUT", "Account/N/balance", ["If-Match": #""x""#], "1"), ("PUT", "Account/N/code", [:], #""x""#),
    ("PUT", "Account/N/doubled", [:], "1"), ("PUT", "Account/N/owner.name", [:], #""x""#),
    ("DELETE", "Account/N/balance", [:], nil), ("PUT", "Account/N", [:], "{}"),
    ("PUT", "Account/N", ["If-Match": "*"], "{}"), ("PUT", "Account/N", ["If-None-Match": "*"], "{}"),
    ("PUT", "Account/N", ["If-Match": #""x""#], #"{"balance":"x"}"#),
    ("PUT", "News/2", [:], #"{"by":"ann","about":"Account/N"}"#), ("PUT", "News/1/about", [:], #""Account/N""#),
    ("PATCH", "News/1", [:], #"{"text":5,"about":"Account/N"}"#),
    ("PATCH", "Customer/1", [:], #"{"accounts":["Account/N"]}"#),
    ("POST", "Customer/1/accounts", [:], #"["Account/N"]"#),
    ("POST", "Customer/1/accounts?operation=minus", [:], #"["Account/N"]"#),
    ("POST", "Customer/1/accounts", [:], #"{"@ref":"Account/N"}"#),
  ]

  /// Operations of one transaction, in which the first mistake must not depend on hidden objects.
  private static let operations = [
    #"{"op":"require","object":"Account/N","revision":2}"#, #"{"op":"delete","object":"Account/N"}"#,
    #"{"op":"set","object":"Account/N","keyPath":"balance","value":1}"#,
    #"{"op":"patch","object":"Account/N","value":{"balance":"x"}}"#,
    #"{"op":"create","object":"Account/N","value":{}}"#,
    #"{"op":"willChange","object":"Account/N","key":"balance"}"#,
    #"{"op":"didChange","object":"Account/N","key":"balance"}"#,
    #"{"op":"set","object":"Customer/1","keyPath":"name","value":5}"#,
    #"{"op":"set","object":"Customer/1","keyPath":"name","value":"Ann"}"#,
    #"{"op":"didChange","object":"Customer/1","key":"name"}"#,
    #"{"op":"set","object":"Customer/1","keyPath":"accounts","value":["Account/N"]}"#,
    #"{"op":"create","object":"News/7","value":{"by":"ann","about":"Account/N"}}"#,
    #"{"op":"create","object":"News/7","value":{"by":"bob","about":"Account/N"}}"#,
  ]

  private static func answer(_ number: Int, _ request: Request, _ bank: GuardedServer, _ identity: [String: String])
    throws -> (status: Int, text: String)
  {
    let name = "Account/\(number)"
    let headers = identity.merging(request.headers) { $1 }.merging(["X-Request-Id": "r"]) { $1 }
    let response = try bank.client.send(
      request.method, "/v1/" + request.target.replacing("Account/N", with: name), headers,
      body: request.body?.replacing("Account/N", with: name))
    return (response.status, "\(response.status) \(response.text.replacing(name, with: "Account/N"))")
  }

  private static func compare(_ request: Request, _ bank: GuardedServer) throws {
    for identity in [bank.ann, [:]] {
      let hidden = try answer(2, request, bank, identity)
      let absent = try answer(9, request, bank, identity)
      #expect(hidden.status >= 400, "\(request)")
      #expect(hidden == absent, "\(request)")
    }
  }

  @Test("A request is answered as if the object had never been")
  func requests() throws {
    let bank = try GuardedServer.bank()
    try bank.client.must("PUT", "/v1/objects/News/1/about", bank.admin, body: "null")
    for request in Self.requests {
      try Self.compare((request.method, "objects/\(request.target)", request.headers, request.body), bank)
    }
  }

  @Test("A transaction is refused by the same operation, for the same reason, as if the object had never been")
  func transactions() throws {
    let bank = try GuardedServer.bank()
    let pairs = Self.operations.flatMap { first in Self.operations.filter { $0 != first }.map { [first, $0] } }
    for operations in Self.operations.map({ [$0] }) + pairs where operations.contains(where: { $0.contains("/N") }) {
      let body = "{\"operations\":[\(operations.joined(separator: ","))]}"
      try Self.compare(("POST", "transactions", [:], body), bank)
    }
  }

  @Test("A member that may not be read stays where it is, and where a list that has it is set again")
  func keptMembers() throws {
    let bank = try GuardedServer.bank()
    try bank.client.must("PUT", "/v1/objects/News/1/about", bank.ann, body: #""Account/2""#)
    try bank.client.must("PATCH", "/v1/objects/News/1", bank.ann, body: #"{"about":"Account/2","text":"again"}"#)
    #expect(try bank.json("News/1/about", bank.ann) == .string("Account/2"))
    let moved =
      #"{"operations":[{"op":"set","object":"News/1","keyPath":"about","value":null},"#
      + #"{"op":"set","object":"News/1","keyPath":"about","value":"Account/2"}]}"#
    try bank.client.must("POST", "/v1/transactions", bank.ann, body: moved)
    #expect(try bank.json("News/1/about", bank.ann) == .string("Account/2"))
  }

  @Test("An expansion leaves out the keys that may not be read of what it shows")
  func expandedKeys() throws {
    let bank = try GuardedServer.bank()
    let customers = [
      try bank.json("Customer/1?expand=accounts", bank.ann),
      try bank.json("Customer?expand=accounts", bank.ann)["objects"][0],
    ]
    for accounts in customers.map({ $0["accounts"].items }) {
      #expect(accounts.map { $0["balance"] } == [.integer(10), .integer(30)])
      #expect(!accounts.contains { $0.has("note") || $0.has("@revision") })
    }
  }

  @Test("Behind a link, what may not be read is null to sorts and sections, of fetches and live queries")
  func links() throws {
    let bank = try GuardedServer.bank()
    for (news, account) in [("News/2", "Account/1"), ("News/3", "Account/3")] {
      try bank.client.must("PUT", "/v1/objects/\(news)", bank.admin, body: #"{"about":"\#(account)"}"#)
    }
    // The account whose balance is between the others comes first for Ann, who may not read it.
    for query in ["News?sort=about.balance", "News?section=about.balance"] {
      let stream = try bank.client.stream("/v1/objects/\(query)", bank.ann)
      for body in [try bank.json(query, bank.ann), try first("results", of: stream).json] {
        #expect(body["objects"].items.compactMap { $0["@ref"].text } == ["News/1", "News/2", "News/3"], "\(query)")
        #expect(body["sections"].items.first.map { $0["name"] } ?? .null == .null, "\(query)")
      }
    }
  }

  @Test("Aggregates of sections leave out unreadable objects, in fetches and live queries")
  func sections() throws {
    let bank = try GuardedServer.bank()
    for number in 1...3 {
      try bank.client.must("PUT", "/v1/objects/Account/\(number)/code", bank.admin, body: #""c""#)
    }
    let query = "Account?section=code&aggregate=@count,@sum.balance"
    let stream = try bank.client.stream("/v1/objects/\(query)", bank.ann)
    for body in [try bank.json(query, bank.ann), try first("results", of: stream).json] {
      let sections = #"[{"name":"c","count":2,"aggregates":{"@count":2,"@sum.balance":40}}]"#
      #expect(body["sections"].json == sections && body["total"].whole == 2, "\(body["total"].json)")
    }
  }

  @Test("The ETag of a key path moves neither for a hidden key beside it, nor for what is hidden behind it")
  func pathTags() throws {
    let bank = try GuardedServer.bank()
    let paths = ["Account/1/balance", "News/1/about.balance", "Account/1/owner.name"]
    let tags = try paths.map { try bank.get($0, bank.ann)["ETag"] }
    for (target, body) in [("Account/1/note", #""x""#), ("Account/2/balance", "21"), ("Customer/1/vip", "true")] {
      try bank.client.must("PUT", "/v1/objects/\(target)", bank.admin, body: body)
    }
    #expect(try paths.map { try bank.get($0, bank.ann)["ETag"] } == tags)
    try bank.client.must("PUT", "/v1/objects/Account/1/balance", bank.admin, body: "11")
    #expect(try bank.get("Account/1/balance", bank.ann)["ETag"] != tags[0])
  }

  @Test("A refused deletion does not tell which object forbids it")
  func denial() throws {
    let schema = """
      access: { read: 'true', delete: 'true' }
      entities:
        Room: { keys: { name: { type: string } } }
        Item:
          access: { read: 'false' }
          keys: { room: { toOne: Room, optional: false } }
      """
    let house = try GuardedServer(schema: schema, objects: [("Room/1", "{}"), ("Item/7", #"{"room":"Room/1"}"#)])
    let refused = try house.client.send("DELETE", "/v1/objects/Room/1", house.ann)
    #expect(refused.problem == "delete-denied" && !refused.text.contains("Item"), "\(refused.text)")
  }

  @Test("A refused deletion does not name an object that it would have deleted too")
  func deniedCascade() throws {
    let schema = """
      access: { read: 'true', delete: 'true' }
      entities:
        Room: { keys: { items: { toMany: Item, delete: cascade } } }
        Item:
          access: { read: 'false' }
          keys: { label: { toOne: Label, delete: deny } }
        Label: {}
      """
    let house = try GuardedServer(
      schema: schema,
      objects: [("Label/1", "{}"), ("Item/7", #"{"label":"Label/1"}"#), ("Room/1", #"{"items":["Item/7"]}"#)])
    let refused = try house.client.send("DELETE", "/v1/objects/Room/1", house.ann)
    #expect(refused.problem == "delete-denied" && !refused.text.contains("Item"), "\(refused.text)")
    #expect(refused.json["object"].text == "Room/1")
  }

  @Test("A replay tells what a link hides since the cut, and nothing of what it hid in between")
  func replays() throws {
    let bank = try GuardedServer.bank()
    let target = "/v1/objects/News/1/about.balance,text?options=new,old"
    /// Returns the values of the path in a replay of these changes.
    func told(_ changes: [(target: String, body: String)]) throws -> [String] {
      let cursor = bank.cursor
      for change in changes + [("News/1/text", #""end""#)] {
        try bank.client.must("PUT", "/v1/objects/\(change.target)", bank.admin, body: change.body)
      }
      let end = bank.cursor
      let stream = try bank.client.stream(target, bank.bob.merging(["Last-Event-ID": cursor]) { $1 })
      let changes = try stream.events { $0.id == end }.flatMap(\.changes)
      return changes.filter { $0["keyPath"].text != "text" }.map { "\($0["old"].json) \($0["new"].json)" }
    }
    let between = try told([
      ("Customer/2/user", #""other""#), ("Account/2/balance", "99"), ("Account/2/balance", "21"),
      ("Customer/2/user", #""bob""#),
    ])
    #expect(between == ["20 null", "null 21"])
    #expect(try told([("Customer/2/user", #""other""#)]) == ["21 null"])
  }

  @Test("A key that may not be read of what extends an entity is not named of the entity either")
  func inheritedKeys() throws {
    let schema = """
      access: { read: 'true' }
      entities:
        Person: { keys: { name: { type: string }, secret: { type: string } } }
        Pupil:
          extends: Person
          access: { keys: { secret: { read: 'false' } } }
      """
    let school = try GuardedServer(
      schema: schema, objects: [("Person/1", #"{"secret":"s"}"#), ("Pupil/2", #"{"secret":"t"}"#)])
    for query in ["filter=secret%20==%20't'", "sort=secret", "section=secret", "aggregate=@max.secret", "keys=secret"] {
      for accept in ["application/json", "text/event-stream"] {
        let response = try school.get("Person?\(query)", school.ann.merging(["Accept": accept]) { $1 })
        #expect(response.status == 403, "\(query): \(response.text)")
      }
    }
  }
}
