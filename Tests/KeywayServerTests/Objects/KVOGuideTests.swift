import KeyValueModel
import TestKit
import Testing

/// Apple's Key-Value Observing Programming Guide, listing by listing, over HTTP: a change of a Cocoa object is a
/// request here, and an observer's `observeValueForKeyPath:ofObject:change:context:` is an event of its stream. This
/// file has the chapter "Registering for Key-Value Observing"; the others are beside it.
@Suite("The KVO guide: registering")
struct KVOGuideTests {
  private let server: TestServer

  init() throws { server = try KVOGuide.server() }

  /// "Registering the inspector as an observer of the openingBalance property", "Implementation of
  /// observeValueForKeyPath:ofObject:change:context:" and "Removing the inspector as an observer of openingBalance".
  @Test("An inspector registers for openingBalance with new and old, is told, and is forgotten when its stream ends")
  func inspector() throws {
    let observations = try server.client.json("/v1/status")["observations"].whole
    let inspector = try server.client.stream("/v1/objects/Account/1/openingBalance?options=new,old")
    #expect(try server.client.json("/v1/status")["observations"].whole == 1)
    try server.set("Account/1/openingBalance", "250")
    let event = try inspector.next()
    #expect(event.name == "change")
    #expect(event.id == "\(server.epoch)-\(try server.revision)")
    #expect(
      event.changes.map(\.json) == [
        #"{"object":"Account/1","keyPath":"openingBalance","kind":"setting","old":100,"new":250}"#
      ])
    inspector.socket.close()
    #expect(try Deadline().awaits { try server.client.json("/v1/status")["observations"].whole == observations })
    try server.set("Account/1/openingBalance", "300")
  }

  /// "Creating context pointers" and "Registering the inspector as an observer of the balance and interestRate
  /// properties": a context tells an observer's registrations apart.
  @Test("A context comes back with every notification of its registration, and of no other")
  func contexts() throws {
    let balance = try server.client.stream("/v1/objects/Account/1/balance?options=new,old&context=PersonAccountBalance")
    let rate = try server.client.stream("/v1/objects/Account/1/interestRate?options=new&context=PersonAccountRate")
    let plain = try server.client.stream("/v1/objects/Account/1/balance?options=new,old")
    try server.set("Account/1/balance", "7")
    try server.set("Account/1/interestRate", "0.5")
    let told = #"{"object":"Account/1","keyPath":"balance","kind":"setting","old":0,"new":7"#
    #expect(try balance.next().changes.map(\.json) == [told + #","context":"PersonAccountBalance"}"#])
    #expect(try plain.next().changes.map(\.json) == [told + "}"])
    #expect(
      try rate.next().changes.map(\.json) == [
        #"{"object":"Account/1","keyPath":"interestRate","kind":"setting","new":0.5,"context":"PersonAccountRate"}"#
      ])
  }

  /// "Registering as an Observer", on `NSKeyValueObservingOptionInitial` and `NSKeyValueObservingOptionPrior`.
  @Test("initial tells the value at registration, prior the change before it: with no new, and before its change")
  func options() throws {
    let stream = try server.client.stream("/v1/objects/Account/1/balance?options=initial,prior,old,new")
    let first = try stream.next()
    #expect(first.json["initial"] == .bool(true))
    let head = #"{"object":"Account/1","keyPath":"balance","kind":"setting""#
    #expect(first.changes.map(\.json) == [head + #","new":0}"#])
    try server.set("Account/1/balance", "7")
    #expect(try stream.next().changes.map(\.json) == [head + #","prior":true,"old":0}"#, head + #","old":0,"new":7}"#])
  }

  /// "Receiving Notification of a Change": the entries of the change dictionary, one write of a to-many for each kind.
  static let kinds: [(method: String, query: String, body: String?, change: String)] = [
    (
      "PUT", "", #"["Transaction/3"]"#,
      #""kind":"setting","old":["Transaction/1","Transaction/2","Transaction/3"],"new":["Transaction/3"]"#
    ),
    (
      "POST", "?index=0,2", #"["Transaction/4","Transaction/5"]"#,
      #""kind":"insertion","indexes":[0,2],"new":["Transaction/4","Transaction/5"]"#
    ),
    (
      "DELETE", "?index=0,2", nil,
      #""kind":"removal","indexes":[0,2],"old":["Transaction/1","Transaction/3"]"#
    ),
    (
      "PUT", "?index=1,2", #"["Transaction/4","Transaction/5"]"#,
      #""kind":"replacement","indexes":[1,2],"old":["Transaction/2","Transaction/3"],"#
        + #""new":["Transaction/4","Transaction/5"]"#
    ),
  ]

  @Test(
    "The change dictionary has what its kind wants; a prior has the same kind and indexes, and no new", arguments: kinds
  )
  func changeDictionary(_ method: String, _ query: String, _ body: String?, _ change: String) throws {
    let target = "/v1/objects/Account/1/transactions"
    let plain = try server.client.stream(target + "?options=old,new")
    let prior = try server.client.stream(target + "?options=prior,new")
    try server.client.must(method, target + query, body: body)
    let head = #"{"object":"Account/1","keyPath":"transactions","#
    #expect(try plain.next().changes.map(\.json) == [head + change + "}"])
    let told = try prior.next().changes
    #expect(told.map { $0.has("prior") } == [true, false])
    #expect(told.map { $0["kind"] } == [told[1]["kind"], told[1]["kind"]])
    #expect(told.map { $0["indexes"] } == [told[1]["indexes"], told[1]["indexes"]])
    #expect(!told[0].has("new") && !told[0].has("old") && !told[1].has("old"))
    #expect(told[1].has("new") == change.contains(#""new""#))
  }
}

/// The guide's data: accounts with their transactions, people, and departments with their employees.
enum KVOGuide {
  static let schema = """
    entities:
      Account:
        keys:
          name: { type: string }
          balance: { type: number, optional: false, default: 0, notifies: changed }
          openingBalance: { type: number, optional: false, default: 0 }
          interestRate: { type: number }
          transactions: { toMany: Transaction, ordered: true, inverse: account, delete: cascade }
      # What the guide writes with automaticallyNotifiesObserversForKey:.
      ManualAccount:
        keys:
          openingBalance: { type: number, notifies: manual, default: 0 }
          itemChanged: { type: integer, notifies: manual, default: 0 }
          both: { type: string, computed: "string(openingBalance) + '/' + string(itemChanged)" }
          name: { type: string }
          transactions: { toMany: Transaction, ordered: true, notifies: manual }
      Document:
        keys:
          account: { toOne: Account }
      Transaction:
        keys:
          payee: { type: string }
          amount: { type: number }
          account: { toOne: Account, inverse: transactions }
      Person:
        keys:
          firstName: { type: string, optional: false }
          lastName: { type: string, optional: false }
          fullName: { type: string, computed: "firstName + ' ' + lastName" }
      Employee:
        extends: Person
        keys:
          middleName: { type: string }
          fullName: { type: string, computed: "firstName + (middleName == null ? ' ' : ' ' + middleName + \
          ' ') + lastName" }
          salary: { type: number, optional: false, default: 0 }
          department: { toOne: Department, inverse: employees }
      Department:
        keys:
          employees: { toMany: Employee, inverse: department }
          totalSalary: { type: number, computed: employees.@sum.salary }
    """

  static let objects = [
    ("Account/1", #"{"name":"Checking","openingBalance":100}"#),
    ("ManualAccount/1", #"{"openingBalance":100}"#),
    ("Document/1", #"{"account":"Account/1"}"#),
    ("Transaction/1", #"{"payee":"Green Power","account":"Account/1"}"#),
    ("Transaction/2", #"{"payee":"Car Loan","account":"Account/1"}"#),
    ("Transaction/3", #"{"payee":"General Cable","account":"Account/1"}"#),
    ("Transaction/4", #"{"payee":"Mortgage"}"#),
    ("Transaction/5", #"{"payee":"Animal Hospital"}"#),
    ("Person/1", #"{"firstName":"Ada","lastName":"Lovelace"}"#),
    ("Department/1", "{}"),
    ("Employee/1", #"{"firstName":"Joseph","lastName":"Clement","salary":300,"department":"Department/1"}"#),
    ("Employee/2", #"{"firstName":"Per","lastName":"Scheutz","salary":250.5,"department":"Department/1"}"#),
    ("Employee/3", #"{"firstName":"Martin","lastName":"Wiberg","salary":200}"#),
  ]

  static func server() throws -> TestServer { try TestServer(schema: schema, objects: objects) }
}
