import KeyValueModel
import TestKit
import Testing

@Suite("Transactions")
struct TransactionTests {
  private let server: TestServer

  init() throws { server = try TestServer() }

  @Test("All operations make one revision and one event, and each has its result")
  func oneRevision() throws {
    let stream = try server.subscribed("Account/1/balance,owner.lastName")
    let before = try server.revision
    let response = try server.commit(
      #"{"op":"create","object":"Person/9","value":{"firstName":"Grace","lastName":"Hopper"}}"#,
      #"{"op":"set","object":"Account/1","keyPath":"balance","value":1}"#,
      #"{"op":"set","object":"Account/1","keyPath":"owner","value":"Person/9"}"#,
      #"{"op":"patch","object":"Person/9","value":{"lastName":"H"}}"#,
      #"{"op":"create","entity":"Note","value":{"text":"made"}}"#,
      #"{"op":"delete","object":"Note/1"}"#)
    #expect(response.json["revision"].whole == before + 1)
    let results = response.json["results"].items.compactMap { $0["object"].text }
    #expect(results.count == 6)
    #expect(Array(results[..<4]) == ["Person/9", "Account/1", "Account/1", "Person/9"])
    #expect(results[4].hasPrefix("Note/") && results[5] == "Note/1")
    let event = try stream.next()
    #expect(event.id == "\(server.epoch)-\(before + 1)")
    #expect(event.changes.map { $0["keyPath"].text } == ["balance", "owner.lastName", "owner.lastName"])
    #expect(event.changes.map { $0["new"].json } == ["1", #""Hopper""#, #""H""#])
  }

  @Test("A failing operation undoes those before it, notifies no observer, and is named by its index")
  func allOrNothing() throws {
    let stream = try server.subscribed("Account/1/balance")
    let before = try server.revision
    let response = try server.client.send(
      "POST", "/v1/transactions",
      body: """
        {"operations":[{"op":"set","object":"Account/1","keyPath":"balance","value":1},
        {"op":"create","object":"Note/8","value":{}},
        {"op":"delete","object":"Person/404"}]}
        """)
    #expect(response.status == 404)
    #expect(response.json["operation"].whole == 2)
    #expect(try server.revision == before)
    #expect(try server.client.send("GET", "/v1/objects/Note/8").status == 404)
    try server.set("Account/1/balance", "5")
    #expect(try stream.next().json["revision"].whole == before + 1)
  }

  @Test("A transaction that changes nothing still takes a revision")
  func emptyTransaction() throws {
    let before = try server.revision
    #expect(try server.commit().json.json == #"{"revision":\#(before + 1),"results":[]}"#)
    #expect(try server.revision == before + 1)
  }

  @Test("A manual key is silent when set, and told once by its bracket, from first old to last new")
  func manualBracket() throws {
    let stream = try server.client.stream("/v1/objects/Account/1/opening?options=old,new")
    try server.set("Account/1/opening", "1")
    try server.commit(
      #"{"op":"willChange","object":"Account/1","key":"opening"}"#,
      #"{"op":"willChange","object":"Account/1","key":"opening"}"#,
      #"{"op":"set","object":"Account/1","keyPath":"opening","value":2}"#,
      #"{"op":"didChange","object":"Account/1","key":"opening"}"#,
      #"{"op":"set","object":"Account/1","keyPath":"opening","value":3}"#,
      #"{"op":"didChange","object":"Account/1","key":"opening"}"#)
    let event = try stream.next()
    #expect(event.json["revision"].whole == (try server.revision))
    #expect(
      event.changes.map(\.json) == [
        #"{"object":"Account/1","keyPath":"opening","kind":"setting","old":1,"new":3}"#
      ])
  }

  @Test("Two sets of one key are two changes, and a bracket makes them one")
  func bracketOfAutomaticKey() throws {
    let stream = try server.subscribed("Account/1/visits")
    let sets = [1, 2].map { #"{"op":"set","object":"Account/1","keyPath":"visits","value":\#($0)}"# }
    try server.commit(sets[0], sets[1])
    #expect(try stream.next().changes.map { $0["new"].whole } == [1, 2])
    try server.commit(
      #"{"op":"willChange","object":"Account/1","key":"visits"}"#, sets[0], sets[1],
      #"{"op":"didChange","object":"Account/1","key":"visits"}"#)
    #expect(try stream.next().changes.map { $0["new"].whole } == [2])
  }

  @Test("An object that is changed and deleted in one transaction is only gone; one made anew lives on")
  func deleted() throws {
    let stream = try server.subscribed("Note/1/text")
    try server.commit(
      #"{"op":"delete","object":"Note/1"}"#, #"{"op":"create","object":"Note/1","value":{"text":"anew"}}"#)
    #expect(try stream.next().changes.map { $0["new"].json } == ["null", #""anew""#])
    try server.commit(
      #"{"op":"set","object":"Note/1","keyPath":"text","value":"x"}"#, #"{"op":"delete","object":"Note/1"}"#)
    let event = try stream.next()
    #expect(event.name == "gone")
    #expect(event.data == #"{"revision":\#(try server.revision),"object":"Note/1"}"#)
  }

  static let refusals: [(operation: String, status: Int, code: String)] = [
    (#"{"op":"willChange","object":"Account/1","key":"balance"}"#, 422, "unbalanced-bracket"),
    (#"{"op":"didChange","object":"Account/1","key":"balance"}"#, 422, "unbalanced-bracket"),
    (#"{"op":"willChange","object":"Account/1","key":"nope"}"#, 404, "undefined-key"),
    (#"{"op":"create","object":"Account/1","value":{}}"#, 409, "already-exists"),
    (#"{"op":"create","object":"Account/x y","value":{}}"#, 422, "invalid-value"),
    (#"{"op":"create","object":"Note/9"}"#, 422, "invalid-value"),
    (#"{"op":"frobnicate","object":"Note/9"}"#, 422, "invalid-value"),
    (#"{"object":"Note/9"}"#, 422, "invalid-value"),
    (#"{"op":"set","object":"Account/1","keyPath":"balance","value":1,"extra":1}"#, 422, "invalid-value"),
    (#"{"op":"set","object":"Account/1","keyPath":"ownerName","value":"x"}"#, 422, "read-only-key"),
    (#"{"op":"set","object":"Account/2","keyPath":"owner.lastName","value":"x"}"#, 409, "null-in-key-path"),
    (#"{"op":"delete","object":"Account/1"}"#, 409, "delete-denied"),
    (#"{"op":"require","object":"Account/1","revision":-1}"#, 422, "invalid-value"),
    (#"{"op":"require","object":"Account/404","revision":1}"#, 412, "stale-revision"),
    (#"{"op":"insert","object":"Account/1","keyPath":"owner","value":[]}"#, 422, "not-a-collection"),
    ("7", 422, "invalid-value"),
  ]

  @Test("Each mistake in an operation has its problem and its index", arguments: refusals)
  func refused(_ operation: String, _ status: Int, _ code: String) throws {
    let before = try server.revision
    let response = try server.client.send(
      "POST", "/v1/transactions", body: "{\"operations\":[\(operation)]}")
    #expect(response.status == status, "\(response.text)")
    #expect(response.problem == code)
    #expect(response.json["operation"].whole == 0)
    #expect(try server.revision == before)
  }

  @Test(
    "A body that is no transaction is refused",
    arguments: ["[]", "{}", #"{"operations":{}}"#, #"{"operations":[],"more":1}"#])
  func malformed(_ body: String) throws {
    let response = try server.client.send("POST", "/v1/transactions", body: body)
    #expect(response.status == 422)
    #expect(response.problem == "invalid-value")
  }
}
