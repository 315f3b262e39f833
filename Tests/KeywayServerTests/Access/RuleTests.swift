import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

@Suite("Rules") struct RuleTests {
  /// The status of each request for an anonymous client, the owner, another customer, a teller, and an admin.
  private static let reads: [(target: String, answers: [Int])] = [
    ("Account/1", [401, 200, 404, 200, 200]),
    ("Account/1/balance", [401, 200, 404, 200, 200]),
    ("Account/1/owner.name", [401, 200, 404, 200, 200]),
    ("Account/1/note", [401, 403, 404, 200, 200]),
    ("Account/1/nothing", [401, 404, 404, 404, 404]),
    ("Account/1?keys=balance", [401, 200, 404, 200, 200]),
    ("Account/1?keys=note", [401, 403, 404, 200, 200]),
    ("Account/1?expand=owner", [401, 200, 404, 200, 200]),
    ("Account?filter=note%20==%20'n1'", [401, 403, 403, 200, 200]),
    ("Account?sort=note", [401, 403, 403, 200, 200]),
    ("Account?section=note", [401, 403, 403, 200, 200]),
    ("Account?aggregate=@max.note", [401, 403, 403, 200, 200]),
    ("Account?keys=note", [401, 403, 403, 200, 200]),
    ("Customer?filter=accounts.exists(a,%20a.note%20==%20'n1')", [401, 403, 403, 200, 200]),
    ("Customer/1", [401, 200, 200, 200, 200]),
    ("Customer/9", [401, 404, 404, 404, 404]),
    ("News/1", [200, 200, 200, 200, 200]),
    ("News", [200, 200, 200, 200, 200]),
    ("Customer", [200, 200, 200, 200, 200]),
  ]

  @Test("Each identity reads what its rules allow, by every form of reading")
  func reads() throws {
    let bank = try GuardedServer.bank()
    for row in Self.reads {
      for (headers, status) in zip([[:], bank.ann, bank.bob, bank.teller, bank.admin], row.answers) {
        for accept in ["application/json", "text/event-stream"] {
          if accept == "text/event-stream", row.target.contains("expand") || row.target.contains("Account/1?") {
            continue
          }
          if accept == "text/event-stream", status == 200 { continue }
          let response = try bank.get(row.target, headers.merging(["Accept": accept]) { $1 })
          #expect(response.status == status, "\(row.target) \(accept) \(headers.isEmpty) \(response.text)")
          #expect(status == 200 || !response.text.contains("n1\""), "\(row.target) \(response.text)")
        }
      }
    }
  }

  @Test("Unreadable objects are absent from fetches, counts, sections, folds, paths and expansions")
  func absence() throws {
    let bank = try GuardedServer.bank()
    func references(_ target: String, _ headers: [String: String]) throws -> [String] {
      let body = try bank.json(target, headers)
      let found = (body["objects"].elements ?? []).compactMap { $0["@ref"].text }
      #expect(body["count"].whole == found.count)
      return found
    }
    #expect(try references("Account", [:]) == [])
    #expect(try references("Account", bank.ann) == ["Account/1", "Account/3"])
    #expect(try references("Account?filter=balance%20>%2015.0", bank.ann) == ["Account/3"])
    #expect(try references("Account?sort=-balance", bank.bob) == ["Account/2"])
    #expect(try references("Account?section=code", bank.teller) == ["Account/1", "Account/2", "Account/3"])
    let sections = try bank.json("Account?section=code", bank.ann)["sections"]
    #expect(sections.elements?.count == 2)
    // References stay, and values after them are null; computed keys read hidden objects too.
    let customer = try bank.json("Customer/1", bank.bob)
    #expect(customer["accounts"].elements?.count == 2 && customer["total"] == .integer(40))
    #expect(try bank.json("Customer/1/accounts.@count", bank.bob) == .integer(2))
    #expect(try bank.json("Customer/1/accounts.@sum.balance", bank.bob) == .integer(0))
    #expect(try bank.json("Customer/1/accounts.balance", bank.bob).elements == [.null, .null])
    #expect(try bank.json("Customer/1/accounts.balance", bank.ann).elements == [.integer(10), .integer(30)])
    #expect(try bank.json("News/1/about.balance", bank.ann) == .null)
    #expect(try bank.json("News/1/about", bank.ann) == .string("Account/2"))
    #expect(try bank.json("News/1?expand=about", bank.ann)["about"] == .string("Account/2"))
    #expect(try bank.json("News/1?expand=about", bank.bob)["about"]["balance"] == .integer(20))
    #expect(try references("News?filter=about%20==%20'Account/2'", bank.ann) == ["News/1"])
    #expect(try references("News?filter=about.balance%20>%201.0", bank.ann) == [])
    #expect(try references("News?filter=about.balance%20>%201.0", bank.bob) == ["News/1"])
    // Hidden keys are left out.
    let account = try bank.json("Account/1", bank.ann)
    #expect(account["note"] == .null && !account.json.contains("note") && account["balance"] == .integer(10))
    #expect(try bank.json("Account/1", bank.teller)["note"] == .string("n1"))
  }

  @Test("An ETag does not move for what may not be read, and holds as a condition")
  func tags() throws {
    let bank = try GuardedServer.bank()
    let before = try bank.get("Account/1", bank.ann)
    let tag = try #require(before["ETag"])
    try bank.client.must("PUT", "/v1/objects/Account/1/note", bank.teller, body: #""other""#)
    let after = try bank.get("Account/1", bank.ann)
    #expect(after["ETag"] == tag && after.text == before.text)
    #expect(try bank.get("Account/1", bank.ann.merging(["If-None-Match": tag]) { $1 }).status == 304)
    try bank.client.must("PUT", "/v1/objects/Account/1/balance", bank.teller, body: "11")
    #expect(try bank.get("Account/1", bank.ann)["ETag"] != tag)
    // A customer's own entry, by its tag.
    let mine = try bank.get("Customer/1", bank.ann)
    let held = try #require(mine["ETag"])
    let patch = #"{"name":"Anne"}"#
    let patched = try bank.client.send(
      "PATCH", "/v1/objects/Customer/1", bank.ann.merging(["If-Match": held]) { $1 }, body: patch)
    #expect(patched.status == 200)
    let stale = try bank.client.send(
      "PATCH", "/v1/objects/Customer/1", bank.ann.merging(["If-Match": held]) { $1 }, body: patch)
    #expect(stale.status == 412 && stale["ETag"] == patched["ETag"])
  }

  /// The status of each write for an anonymous client, the owner, another customer, a teller, and an admin.
  private static let writes: [(method: String, target: String, body: String?, answers: [Int])] = [
    ("PUT", "Account/1/balance", "1", [401, 403, 404, 200, 200]),
    ("PUT", "Account/1/note", #""x""#, [401, 403, 404, 200, 200]),
    ("PUT", "Account/1/code", #""x""#, [401, 403, 404, 403, 200]),
    ("PUT", "Account/1/balance", "-1", [401, 403, 404, 403, 200]),
    ("PATCH", "Account/1", #"{"balance":-1}"#, [401, 403, 404, 403, 200]),
    ("PATCH", "Account/1", #"{"balance":"x"}"#, [401, 403, 404, 422, 422]),
    ("PUT", "Account/1", #"{"balance":3,"code":"c1","owner":"Customer/1"}"#, [401, 403, 403, 403, 200]),
    ("PUT", "Account/8", #"{"balance":3}"#, [401, 403, 403, 201, 201]),
    ("PUT", "Account/8", #"{"balance":3,"code":"x"}"#, [401, 403, 403, 403, 201]),
    ("POST", "Account", #"{"balance":3}"#, [401, 403, 403, 201, 201]),
    ("DELETE", "Account/1", nil, [401, 403, 404, 403, 204]),
    ("PUT", "News/2", #"{"by":"ann"}"#, [401, 201, 403, 403, 201]),
    ("PUT", "News/2", #"{"by":"ann","about":"Account/2"}"#, [401, 422, 403, 403, 201]),
    ("PUT", "News/2", #"{"by":"ann","about":"Account/99"}"#, [401, 422, 403, 403, 422]),
    ("PATCH", "News/1", #"{"text":"x"}"#, [401, 200, 403, 403, 200]),
    ("PATCH", "News/1", #"{"by":"bob"}"#, [401, 403, 403, 403, 200]),
    ("PUT", "News/1/about.balance", "1", [409, 409, 403, 200, 200]),
    ("DELETE", "News/1", nil, [401, 204, 403, 403, 204]),
    ("DELETE", "Customer/2", nil, [401, 403, 403, 403, 204]),
  ]

  @Test("Each identity writes what its rules allow, by every form of writing; a refusal changes nothing")
  func writes() throws {
    for row in Self.writes {
      for (position, status) in row.answers.enumerated() {
        let bank = try GuardedServer.bank()
        let headers = [[:], bank.ann, bank.bob, bank.teller, bank.admin][position]
        let revision = bank.server.server.store.snapshot.revision
        let response = try bank.client.send(row.method, "/v1/objects/\(row.target)", headers, body: row.body)
        #expect(response.status == status, "\(row) \(position): \(response.text)")
        if status >= 400 {
          #expect(bank.server.server.store.snapshot.revision == revision)
          let detail = response.json["detail"].text ?? ""
          #expect(!detail.contains("n1") && !detail.contains("20"), "\(response.text)")
        }
      }
    }
  }

  @Test("A transaction is refused by the operation that no rule allows, with its number")
  func transactions() throws {
    let bank = try GuardedServer.bank()
    func commit(_ operations: [String], _ headers: [String: String]) throws -> WireResponse {
      try bank.client.send(
        "POST", "/v1/transactions", headers, body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    }
    let allowed = #"{"op":"set","object":"Account/1","keyPath":"balance","value":5}"#
    let above = #"{"op":"set","object":"Account/1","keyPath":"balance","value":2000}"#
    let code = #"{"op":"set","object":"Account/2","keyPath":"code","value":"z"}"#
    let hidden = #"{"op":"set","object":"Account/2","keyPath":"balance","value":1}"#
    let made = #"{"op":"create","object":"News/7","value":{"by":"ann","about":"Account/1"}}"#
    #expect(try commit([allowed, code], bank.teller).json["operation"] == .integer(1))
    #expect(try commit([made, hidden], bank.ann).status == 404)
    #expect(try commit([made, hidden], bank.ann).json["operation"] == .integer(1))
    #expect(try commit([allowed], bank.ann).problem == "forbidden")
    #expect(try commit([above, allowed], bank.teller).status == 200)
    #expect(try commit([above], bank.teller).status == 200)
    // The object before the transaction counts.
    #expect(try commit([allowed], bank.teller).problem == "forbidden")
    let created = try commit([made], bank.ann)
    #expect(created.status == 200)
    #expect(try commit([made], [:]).status == 401)
    let bracket = #"{"op":"willChange","object":"News/1","key":"text"}"#
    #expect(try commit([bracket], bank.bob).problem == "forbidden")
    let required = #"{"op":"require","object":"Account/2","revision":1}"#
    #expect(try commit([required], bank.ann).problem == "unknown-object")
  }

  @Test(
    "A JSON Patch of the whole document sets no key that may not be set",
    arguments: [
      #"[{"op":"replace","path":"","value":{"text":"u","lock":"x"}}]"#,
      #"[{"op":"replace","path":"","value":{"text":"u"}}]"#,
      #"[{"op":"add","path":"","value":{"text":"u","lock":null}}]"#,
      #"[{"op":"copy","from":"/draft","path":""}]"#, #"[{"op":"move","from":"/draft","path":""}]"#,
    ])
  func wholePatches(patch: String) throws {
    let schema = """
      entities:
        Box:
          access: { read: 'true', update: 'true', keys: { lock: { update: '"chief" in identity.roles' } } }
          keys: { lock: { type: string }, text: { type: string }, draft: { type: json } }
      """
    let body = #"{"lock":"l","text":"t","draft":{"lock":"x"}}"#
    let box = try GuardedServer(schema: schema, objects: [("Box/1", body)])
    func send(_ patch: String, _ headers: [String: String]) throws -> WireResponse {
      try box.client.send(
        "PATCH", "/v1/objects/Box/1", headers.merging(["Content-Type": "application/json-patch+json"]) { $1 },
        body: patch)
    }
    #expect(try send(patch, box.ann).problem == "forbidden")
    #expect(try box.json("Box/1", box.admin)["lock"] == .string("l"))
    // A patch that leaves the key unchanged does not set it.
    let same = #"[{"op":"replace","path":"","value":{"text":"u","lock":"l"}}]"#
    #expect(try send(same, box.ann).status == 200)
    #expect(try send(patch.replacing("/draft", with: "/none"), box.bearer("carl", roles: ["chief"])).status != 403)
  }

  @Test("A JSON Patch neither changes nor tests nor copies a key that may not be read")
  func patches() throws {
    let bank = try GuardedServer.bank()
    func patch(_ target: String, _ body: String, _ headers: [String: String]) throws -> WireResponse {
      try bank.client.send(
        "PATCH", "/v1/objects/\(target)", headers.merging(["Content-Type": "application/json-patch+json"]) { $1 },
        body: body)
    }
    let open = """
      entities:
        Box:
          access:
            read: 'true'
            update: 'true'
            keys: { secret: { read: 'false' } }
          keys:
            secret: { type: string }
            text: { type: string }
      """
    let box = try GuardedServer(schema: open, objects: [("Box/1", #"{"secret":"s","text":"t"}"#)])
    func boxed(_ body: String) throws -> WireResponse {
      try box.client.send(
        "PATCH", "/v1/objects/Box/1", box.ann.merging(["Content-Type": "application/json-patch+json"]) { $1 },
        body: body)
    }
    // Nor does its ETag change with a hidden key, even if the object has no computed keys.
    let tag = try box.get("Box/1", box.ann)["ETag"]
    try box.client.must("PUT", "/v1/objects/Box/1/secret", box.admin, body: #""s""#)
    #expect(try box.get("Box/1", box.ann)["ETag"] == tag)
    #expect(try box.get("Box/1/text", box.ann)["ETag"] != nil)
    #expect(try boxed(#"[{"op":"test","path":"/secret","value":"s"}]"#).status == 403)
    #expect(try boxed(#"[{"op":"copy","from":"/secret","path":"/text"}]"#).status == 403)
    #expect(try boxed(#"[{"op":"copy","from":"/@revision","path":"/text"}]"#).status == 422)
    #expect(try boxed(#"[{"op":"test","path":"/text","value":"t"}]"#).status == 200)
    for operation in ["add", "replace"] {
      let whole = #"[{"op":"\#(operation)","path":"","value":{"secret":"x"}}]"#
      #expect(try boxed(whole).problem == "forbidden")
    }
    // The whole document is the visible part of the object, and a PUT leaves the rest alone.
    #expect(try boxed(#"[{"op":"replace","path":"","value":{"text":"u"}}]"#).status == 200)
    try box.client.must("PUT", "/v1/objects/Box/1", box.ann, body: #"{"text":"v"}"#)
    #expect(try box.json("Box/1", box.admin)["secret"] == .string("s"))
    #expect(try box.json("Box/1", box.admin)["text"] == .string("v"))
    #expect(try patch("Account/1", #"[{"op":"replace","path":"/balance","value":1}]"#, bank.teller).status == 200)
  }

  @Test("A hidden key has no value where it is only known while a filter is evaluated what the object is")
  func dynamicNames() throws {
    let schema = """
      access: { read: 'true' }
      entities:
        Person:
          access: { keys: { secret: { read: 'false' } } }
          keys: { secret: { type: string }, name: { type: string } }
        Note:
          keys: { owner: { toOne: Person }, mixed: { computed: "[owner, 1]" }, map: { computed: "{'o': owner}" } }
      """
    let box = try GuardedServer(
      schema: schema,
      objects: [("Person/1", #"{"secret":"s","name":"n"}"#), ("Note/1", #"{"owner":"Person/1"}"#)])
    func count(_ filter: String, _ headers: [String: String]) throws -> Int? {
      try box.json("Note?filter=\(filter)", headers)["count"].whole
    }
    for object in ["mixed[0]", "map.o"] {
      #expect(try count("\(object).secret%20==%20's'", box.ann) == 0, "\(object)")
      #expect(try count("\(object).secret%20==%20's'", box.admin) == 1, "\(object)")
      #expect(try count("\(object).name%20==%20'n'", box.ann) == 1, "\(object)")
    }
  }

  @Test("The answer to a writer who may not read what was written has no body")
  func unreadableResult() throws {
    let schema = """
      entities:
        Letter:
          access: { create: 'identity != null', read: 'false' }
          keys: { text: { type: string } }
      """
    let box = try GuardedServer(schema: schema, objects: [])
    let created = try box.client.send("POST", "/v1/objects/Letter", box.ann, body: #"{"text":"x"}"#)
    #expect(created.status == 201 && created.text.isEmpty && created["Location"] != nil && created["ETag"] == nil)
    let put = try box.client.send("PUT", "/v1/objects/Letter/1", box.ann, body: #"{"text":"x"}"#)
    #expect(put.status == 201 && put.text.isEmpty)
    // An existing object gets the same response as a forbidden one.
    #expect(try box.client.send("PUT", "/v1/objects/Letter/1", box.ann, body: "{}").status == 403)
    let again = #"{"operations":[{"op":"create","object":"Letter/1","value":{}}]}"#
    #expect(try box.client.send("POST", "/v1/transactions", box.ann, body: again).problem == "forbidden")
  }

  @Test("If nothing is hidden, a stream sends the same with rules as without, settings to an equal value too")
  func sameEvents() throws {
    let schema = """
      access: { create: 'true' }
      entities:
        Box:
          access: { read: 'owner == identity.sub || items.exists(i, i.owner == identity.sub)' }
          keys:
            owner: { type: string }
            tag: { type: string }
            items: { toMany: Item, ordered: true }
            first: { toOne: Item }
            size: { computed: "items.size()", notifies: changed }
        Item:
          access: { read: 'owner != "eve"' }
          keys: { owner: { type: string }, name: { type: string } }
      """
    let objects = [
      ("Item/1", #"{"owner":"ann","name":"a"}"#), ("Item/2", #"{"owner":"bob","name":"b"}"#),
      ("Box/1", #"{"owner":"ann","items":["Item/1"],"first":"Item/1"}"#),
    ]
    let box = try GuardedServer(schema: schema, objects: objects)
    let target = "/v1/objects/Box/1/owner,tag,items,first.name,size?options=new,old,prior"
    let streams = try [box.admin, box.ann].map { try box.client.stream(target, $0) }
    let writes: [(method: String, path: String, body: String?)] = [
      ("PUT", "Box/1/owner", #""ann""#), ("PUT", "Box/1/tag", #""x""#), ("PUT", "Box/1/tag", #""x""#),
      ("POST", "Box/1/items", #""Item/2""#), ("DELETE", "Box/1/items?index=0", nil),
      ("PUT", "Box/1/first", #""Item/2""#), ("PUT", "Item/2/name", #""c""#), ("PUT", "Item/2/name", #""c""#),
      ("PUT", "Box/1", #"{"owner":"ann"}"#), ("PUT", "Box/1/tag", #""end""#),
    ]
    for write in writes {
      try box.client.must(write.method, "/v1/objects/\(write.path)", box.admin, body: write.body)
    }
    let told = try streams.map { stream in
      try stream.events { $0.json["changes"].items.contains { $0["new"] == .string("end") } }.map(\.json)
    }
    #expect(told[0].count >= 8)
    for (admin, reader) in zip(told[0], told[1]) { #expect(admin == reader, "\(admin.json)\n\(reader.json)") }
  }

  @Test("An object that turns unreadable is gone, leaves live queries, and is null behind a link")
  func turning() throws {
    let bank = try GuardedServer.bank()
    let object = try bank.client.stream("/v1/objects/Account/1/balance?options=new,old", bank.ann)
    let list = try bank.client.stream("/v1/objects/Account?keys=balance", bank.ann)
    let link = try bank.client.stream("/v1/objects/News/1/about.balance?options=new,old,initial", bank.bob)
    #expect(try link.next().json["changes"][0]["new"] == .integer(20))
    #expect(try list.next().json["count"].whole == 2)
    // The owner's name is what the rule reads, of another object.
    try bank.client.must("PUT", "/v1/objects/Customer/1/user", bank.admin, body: #""other""#)
    #expect(try object.rest().contains { $0.name == "gone" })
    let left = try list.next()
    #expect(left.json["changes"].items.map { $0["reason"].text } == ["left", "left"])
    // A revision that hides an object does not reveal the values that it sets.
    let operations = """
      {"operations":[{"op":"set","object":"Account/2","keyPath":"balance","value":99},
      {"op":"set","object":"Customer/2","keyPath":"user","value":"other"}]}
      """
    try bank.client.must("POST", "/v1/transactions", bank.admin, body: operations)
    let hidden = try link.next()
    #expect(hidden.json["changes"][0]["old"] == .integer(20) && hidden.json["changes"][0]["new"] == .null)
    #expect(!(hidden.data ?? "").contains("99"))
    // Nor does the revision that shows it again reveal its values while it was hidden.
    let shown = """
      {"operations":[{"op":"set","object":"Account/2","keyPath":"balance","value":77},
      {"op":"set","object":"Customer/2","keyPath":"user","value":"bob"}]}
      """
    try bank.client.must("POST", "/v1/transactions", bank.admin, body: shown)
    let back = try link.next()
    #expect(back.json["changes"][0]["old"] == .null && back.json["changes"].items.last?["new"] == .integer(77))
    #expect(!(back.data ?? "").contains("99"))
    // A cursor from that time cannot be resumed by a client that may read the object again.
    try bank.client.must("PUT", "/v1/objects/Customer/1/user", bank.admin, body: #""ann""#)
    let headers = bank.ann.merging(["Last-Event-ID": left.id ?? ""]) { $1 }
    let resumed = try bank.client.stream("/v1/objects/Account/1/balance", headers)
    #expect(try resumed.next().json["reason"].text == "compacted")
  }

  @Test("On a server without keys rules are asked of null, and what has no rule may be done")
  func withoutKeys() throws {
    let schema = """
      entities:
        Open:
          keys: { text: { type: string } }
        Closed:
          access: { read: 'text == "public"', update: identity != null }
          keys: { text: { type: string } }
      """
    let server = try TestServer(
      schema: schema,
      objects: [("Open/1", "{}"), ("Closed/1", #"{"text":"public"}"#), ("Closed/2", #"{"text":"private"}"#)]
    ) { $0.access.open = true }
    #expect(try server.client.send("GET", "/v1/objects/Open/1").status == 200)
    #expect(try server.client.send("GET", "/v1/objects/Closed/1").status == 200)
    #expect(try server.client.json("/v1/objects/Closed")["count"].whole == 1)
    for (method, target) in [("GET", "Closed/2"), ("GET", "Closed/9"), ("PATCH", "Closed/1"), ("DELETE", "Closed/2")] {
      let response = try server.client.send(method, "/v1/objects/\(target)", body: method == "PATCH" ? "{}" : nil)
      #expect(response.status == 401 && response.problem == "unauthenticated", "\(method) \(target)")
    }
    #expect(try server.client.send("DELETE", "/v1/objects/Closed/1").status == 204)
  }
}
