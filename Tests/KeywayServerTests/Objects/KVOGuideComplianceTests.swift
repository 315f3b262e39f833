import KeyValueModel
import TestKit
import Testing

/// The chapter "KVO Compliance" of Apple's guide; see `KVOGuideTests`.
@Suite("The KVO guide: compliance")
struct KVOGuideComplianceTests {
  private let server: TestServer

  init() throws { server = try KVOGuide.server() }

  private func operation(_ op: String, _ key: String) -> String {
    #"{"op":"\#(op)","object":"ManualAccount/1","key":"\#(key)"}"#
  }

  private func setting(_ key: String, _ json: String) -> String {
    #"{"op":"set","object":"ManualAccount/1","keyPath":"\#(key)","value":\#(json)}"#
  }

  /// Returns the change that a set of the observed `name` makes. Tests expect it right after silent changes.
  private func name(_ value: String) -> String {
    #"{"object":"ManualAccount/1","keyPath":"name","kind":"setting","old":null,"new":"\#(value)"}"#
  }

  /// "Examples of method calls that cause KVO change notifications to be emitted": the accessor, `setValue:forKey:`,
  /// `setValue:forKeyPath:`; and the guide's `addObject:` to what `mutableArrayValueForKey:` gives.
  @Test("A name that is set as part of the object, by a patch, by its key or by a key path is told each time")
  func automatic() throws {
    let observer = try server.client.stream("/v1/objects/Account/1/name?options=old,new")
    try server.client.must("PATCH", "/v1/objects/Account/1", body: #"{"name":"Savings"}"#)
    try server.set("Account/1/name", #""Savings""#)
    try server.set("Document/1/account.name", #""Savings""#)
    try server.client.must("PUT", "/v1/objects/Account/1", body: #"{"name":"Savings"}"#)
    let olds = try (0..<4).map { _ in
      let changes = try observer.next().changes
      #expect(changes.count == 1 && changes[0]["kind"].text == "setting" && changes[0]["new"].text == "Savings")
      return changes[0]["old"].text
    }
    #expect(olds == ["Checking", "Savings", "Savings", "Savings"])
  }

  /// "Examples of method calls that cause KVO change notifications to be emitted": the last of them.
  @Test("A new transaction that is added to the collection is an insertion at its end, and its account is told as well")
  func automaticCollection() throws {
    let observer = try server.client.stream("/v1/objects/Account/1/transactions?options=old,new")
    let member = try server.client.stream("/v1/objects/Transaction/4/account?options=old,new")
    try server.client.must("POST", "/v1/objects/Account/1/transactions", body: #""Transaction/4""#)
    #expect(
      try observer.next().changes.map(\.json) == [
        #"{"object":"Account/1","keyPath":"transactions","kind":"insertion","indexes":[3],"new":["Transaction/4"]}"#
      ])
    #expect(try member.next().changes.map { $0["new"].text } == ["Account/1"])
    try server.client.must(
      "POST", "/v1/objects/Account/1/transactions", body: #"{"@ref":"Transaction/9","payee":"Mortgage"}"#)
    #expect(try observer.next().changes.map { $0["new"].json } == [#"["Transaction/9"]"#])
  }

  /// "Example implementation of automaticallyNotifiesObserversForKey:" and "Example accessor method implementing manual
  /// notification".
  @Test("A manual openingBalance is silent when set, and told by willChange and didChange around the set")
  func manual() throws {
    let observer = try server.client.stream("/v1/objects/ManualAccount/1/openingBalance,name?options=old,new")
    try server.set("ManualAccount/1/openingBalance", "150")
    try server.client.must("PATCH", "/v1/objects/ManualAccount/1", body: #"{"openingBalance":160}"#)
    #expect(try server.client.json("/v1/objects/ManualAccount/1/openingBalance").whole == 160)
    try server.set("ManualAccount/1/name", #""first""#)
    #expect(try observer.next().changes.map(\.json) == [name("first")])
    try server.commit(
      operation("willChange", "openingBalance"), setting("openingBalance", "200"),
      operation("didChange", "openingBalance"))
    #expect(
      try observer.next().changes.map(\.json) == [
        #"{"object":"ManualAccount/1","keyPath":"openingBalance","kind":"setting","old":160,"new":200}"#
      ])
  }

  /// "Testing the value for change before providing notification": the effect of `notifies: changed`.
  @Test("A key that notifies if changed is silent for the value that it has, however that is set and written")
  func onlyIfChanged() throws {
    let observer = try server.client.stream("/v1/objects/Account/1/balance?options=prior,old,new")
    for json in ["0", "0.0", "0e5"] { try server.set("Account/1/balance", json) }
    try server.client.must("PATCH", "/v1/objects/Account/1", body: #"{"balance":0}"#)
    try server.commit(
      #"{"op":"willChange","object":"Account/1","key":"balance"}"#,
      #"{"op":"set","object":"Account/1","keyPath":"balance","value":5}"#,
      #"{"op":"set","object":"Account/1","keyPath":"balance","value":0}"#,
      #"{"op":"didChange","object":"Account/1","key":"balance"}"#)
    try server.set("Account/1/balance", "1")
    let event = try observer.next()
    #expect(event.json["revision"].whole == (try server.revision))
    #expect(event.changes.map { $0["old"].whole } == [0, 0])
    #expect(event.changes[1]["new"].whole == 1)
  }

  /// "Nesting change notifications for multiple keys".
  @Test(
    "Nested brackets of openingBalance and itemChanged are told in the order of their ends, and all is final by then")
  func nested() throws {
    let paths = "openingBalance,itemChanged,both"
    let observer = try server.client.stream("/v1/objects/ManualAccount/1/\(paths)?options=old,new")
    try server.commit(
      operation("willChange", "openingBalance"), operation("willChange", "itemChanged"),
      setting("openingBalance", "1"), setting("openingBalance", "250.5"), setting("itemChanged", "1"),
      operation("didChange", "itemChanged"), operation("didChange", "openingBalance"))
    let changes = try observer.next().changes
    let own = changes.filter { $0["keyPath"].text != "both" }
    let head = #"{"object":"ManualAccount/1","keyPath":"#
    #expect(
      own.map(\.json) == [
        head + #""itemChanged","kind":"setting","old":0,"new":1}"#,
        head + #""openingBalance","kind":"setting","old":100,"new":250.5}"#,
      ])
    // A key that depends on both has only seen the state before and the state after.
    let computed = changes.filter { $0["keyPath"].text == "both" }
    #expect(!computed.isEmpty)
    #expect(computed.allSatisfy { $0["new"].text == "250.5/1" })
    #expect(computed.first?["old"].text == "100/0")
  }

  @Test("Brackets of one key nest: only the outermost pair is told")
  func nestedOfOneKey() throws {
    let observer = try server.client.stream("/v1/objects/ManualAccount/1/openingBalance?options=prior,old,new")
    let (will, did) = (operation("willChange", "openingBalance"), operation("didChange", "openingBalance"))
    try server.commit(
      will, setting("openingBalance", "1"), will, setting("openingBalance", "2"), did, setting("openingBalance", "3"),
      did)
    let changes = try observer.next().changes
    #expect(changes.map { $0.has("prior") } == [true, false])
    #expect(changes.map { $0["old"].whole } == [100, 100])
    #expect(changes[1]["new"].whole == 3)
  }

  /// "Implementation of manual observer notification in a to-many relationship": `removeTransactionsAtIndexes:`.
  @Test("Transactions that are removed at indexes are one removal with the index set, be the indexes in any order")
  func removal() throws {
    let observer = try server.client.stream("/v1/objects/Account/1/transactions?options=old,new,prior")
    try server.client.must("DELETE", "/v1/objects/Account/1/transactions?index=2,0")
    let head = #"{"object":"Account/1","keyPath":"transactions","kind":"removal","#
    let rest = #""indexes":[0,2],"old":["Transaction/1","Transaction/3"]}"#
    #expect(try observer.next().changes.map(\.json) == [head + #""prior":true,"# + rest, head + rest])
    #expect(try server.client.json("/v1/objects/Account/1/transactions").json == #"["Transaction/2"]"#)
  }

  /// The same listing, in which the class itself brackets its changes: `willChange:valuesAtIndexes:forKey:`.
  @Test("A manual collection is silent when it is changed, and a bracket tells the whole of it, old and new")
  func manualCollection() throws {
    let observer = try server.client.stream("/v1/objects/ManualAccount/1/transactions,name?options=old,new")
    let target = "/v1/objects/ManualAccount/1/transactions"
    try server.client.must("POST", target, body: #"["Transaction/1","Transaction/2","Transaction/3"]"#)
    try server.set("ManualAccount/1/name", #""first""#)
    #expect(try observer.next().changes.map(\.json) == [name("first")])
    try server.commit(
      operation("willChange", "transactions"),
      #"{"op":"remove","object":"ManualAccount/1","keyPath":"transactions","index":[0,2]}"#,
      operation("didChange", "transactions"))
    #expect(
      try observer.next().changes.map(\.json) == [
        #"{"object":"ManualAccount/1","keyPath":"transactions","kind":"setting","#
          + #""old":["Transaction/1","Transaction/2","Transaction/3"],"new":["Transaction/2"]}"#
      ])
  }

  /// Requests that the guide handles with `valueForUndefinedKey:`, `setValue:forUndefinedKey:` and `setNilValueForKey:`
  /// ("KVO Compliance": a class must be key-value coding compliant for the property).
  static let violations: [(method: String, target: String, body: String?, status: Int, code: String)] = [
    ("GET", "Account/1/overdraft", nil, 404, "undefined-key"),
    ("GET", "Document/1/account.overdraft", nil, 404, "undefined-key"),
    ("PUT", "Account/1/overdraft", "1", 404, "undefined-key"),
    ("PATCH", "Account/1", #"{"name":"x","overdraft":1}"#, 422, "invalid-value"),
    ("PUT", "Account/1", #"{"overdraft":1}"#, 422, "invalid-value"),
    ("PUT", "Account/1/openingBalance", "null", 422, "null-not-allowed"),
    ("DELETE", "Account/1/openingBalance", nil, 422, "null-not-allowed"),
    ("PATCH", "Account/1", #"{"openingBalance":null}"#, 422, "null-not-allowed"),
    ("PUT", "Document/1/account.openingBalance", "null", 422, "null-not-allowed"),
    ("PUT", "Account/1/openingBalance", #""much""#, 422, "invalid-value"),
    ("PUT", "Account/1/transactions.payee", #""x""#, 422, "not-a-collection"),
    ("PUT", "Person/1/fullName", #""x""#, 422, "read-only-key"),
  ]

  @Test(
    "Requests that the objects do not comply with are refused, and change and notify nothing", arguments: violations)
  func violation(_ method: String, _ target: String, _ body: String?, _ status: Int, _ code: String) throws {
    let observer = try server.client.stream("/v1/objects/Account/1/name,openingBalance?options=new")
    let before = try server.revision
    let response = try server.client.send(method, "/v1/objects/\(target)", body: body)
    #expect(response.status == status, "\(response.text)")
    #expect(response.problem == code, "\(response.text)")
    #expect(try server.revision == before)
    try server.set("Account/1/name", #""next""#)
    #expect(try observer.next().json["revision"].whole == before + 1)
  }

  @Test("An observer of a missing key, or of one after a to-many, is refused too")
  func unobservable() throws {
    for (target, status, code) in [
      ("Account/1/overdraft", 404, "undefined-key"), ("Document/1/account.overdraft", 404, "undefined-key"),
      ("Account/1/transactions.payee", 422, "unobservable-key-path"), ("Account/404/name", 404, "unknown-object"),
    ] {
      let response = try server.client.send("GET", "/v1/objects/\(target)", ["Accept": "text/event-stream"])
      #expect(response.status == status, "\(target)")
      #expect(response.problem == code, "\(target)")
    }
  }
}
