import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

/// Limits and records that belong to an identity, and not to its address.
@Suite("Shares of identities") struct IdentityShareTests {
  private static let note = #"{"text":"x"}"#

  private func post(
    _ guarded: GuardedServer, _ headers: [String: String], key: String
  ) throws -> (location: String?, isReplayed: Bool) {
    let all = headers.merging(["Idempotency-Key": key]) { given, _ in given }
    let response = try guarded.client.must("POST", "/v1/objects/Note", all, body: Self.note)
    return (response["Location"], response["Idempotency-Replayed"] == "true")
  }

  @Test("One Idempotency-Key of two identities is two keys, also after a restart")
  func keys() throws {
    let folder = try ScratchDirectory()
    func journal() throws -> SQLiteJournal {
      try SQLiteJournal(directory: folder.path + "/store", durability: .synced) {
        JournalIdentity(epoch: "shares", schema: "")
      }
    }
    let roles = ["keyway-admin"]
    var locations: [String: String?] = [:]
    do {
      let guarded = try GuardedServer(journal: try journal())
      for sub in ["one", "two"] {
        let made = try post(guarded, guarded.bearer(sub, roles: roles), key: "k")
        #expect(!made.isReplayed)
        locations[sub] = made.location
      }
      let again = try post(guarded, guarded.bearer("one", roles: roles), key: "k")
      #expect(again.location == locations["one"] && again.isReplayed)
    }
    #expect(locations["one"] != locations["two"])
    let guarded = try GuardedServer(journal: try journal(), objects: [])
    for (sub, location) in locations {
      let again = try post(guarded, guarded.bearer(sub, roles: roles), key: "k")
      #expect(again.location == location && again.isReplayed, "\(sub)")
    }
  }

  @Test("A retry with fewer roles, or after the object was hidden, is told that it was done, and not what was written")
  func hiddenReplays() throws {
    let folder = try ScratchDirectory()
    func open(_ objects: [(String, String)]) throws -> GuardedServer {
      try GuardedServer(
        journal: try SQLiteJournal(directory: folder.path + "/store", durability: .synced) {
          JournalIdentity(epoch: "replays", schema: "")
        }, schema: Bank.schema, objects: objects)
    }
    let writes: [(target: String, body: String)] = [
      ("/v1/objects/Account", #"{"balance":5,"note":"secret"}"#),
      ("/v1/transactions", #"{"operations":[{"op":"create","entity":"Account","value":{"note":"x"}}]}"#),
      ("/v1/objects/Customer/9/accounts", #""Account/2""#),
    ]
    func send(_ bank: GuardedServer, _ roles: [String], _ index: Int) throws -> WireResponse {
      let headers = bank.bearer("tim", roles: roles).merging(["Idempotency-Key": "k\(index)"]) { $1 }
      return try bank.client.send("POST", writes[index].target, headers, body: writes[index].body)
    }
    var first: [WireResponse] = []
    func check(_ bank: GuardedServer) throws {
      for (index, answer) in first.enumerated() {
        #expect(answer.isSuccess && !answer.body.isEmpty, "\(answer.text)")
        let again = try send(bank, ["teller"], index)
        #expect(again.status == answer.status && again.body == answer.body && again["ETag"] == answer["ETag"])
        let fewer = try send(bank, [], index)
        #expect(fewer.status == (answer.status == 200 ? 204 : answer.status) && fewer.body.isEmpty)
        #expect(fewer["ETag"] == nil && fewer["Content-Type"] == nil)
        #expect(fewer["Location"] == answer["Location"] && fewer["Idempotency-Replayed"] == "true")
        #expect(fewer["Keyway-Cursor"] == answer["Keyway-Cursor"])
      }
    }
    do {
      let bank = try open(Bank.objects + [("Customer/9", #"{"user":"tim"}"#)])
      for index in writes.indices { first.append(try send(bank, ["teller"], index)) }
      try check(bank)
    }
    try check(try open([]))
  }

  @Test("A retry by the same identity has no content once the object may not be read any more")
  func hiddenObject() throws {
    let bank = try GuardedServer(
      schema: """
        access: { read: open == true, create: identity != null, update: identity != null }
        entities:
          Memo:
            keys:
              open: { type: boolean, default: true }
              text: { type: string }
              words: { toMany: string }
        """, objects: [("Memo/1", "{}")])
    func post(_ target: String, _ key: String, _ body: String) throws -> WireResponse {
      try bank.client.send("POST", target, bank.ann.merging(["Idempotency-Key": key]) { $1 }, body: body)
    }
    func memo() throws -> WireResponse { try post("/v1/objects/Memo", "memo", #"{"text":"secret"}"#) }
    func word() throws -> WireResponse { try post("/v1/objects/Memo/1/words", "word", #""secret""#) }
    func transaction() throws -> WireResponse {
      try post(
        "/v1/transactions", "all", #"{"operations":[{"op":"set","object":"Memo/1","keyPath":"text","value":"a"}]}"#)
    }
    let made = try memo()
    let answers = [made, try word(), try transaction()]
    #expect(answers.map(\.status) == [201, 200, 200])
    #expect(try [memo(), word(), transaction()].map(\.body) == answers.map(\.body))
    let reference = try #require(made.json["@ref"].text)
    for object in ["Memo/1", reference] {
      try bank.client.must("PUT", "/v1/objects/\(object)/open", bank.admin, body: "false")
    }
    let again = try [memo(), word(), transaction()]
    #expect(again.map(\.status) == [201, 204, 204] && again.allSatisfy { $0.body.isEmpty && $0["ETag"] == nil })
    // The objects are deleted, and the stored responses are given again, since deleted objects are not hidden.
    for object in ["Memo/1", reference] { try bank.client.must("DELETE", "/v1/objects/\(object)", bank.admin) }
    #expect(try [memo(), word(), transaction()].map(\.body) == answers.map(\.body))
  }

  @Test("A page is for the identity that began the fetch, as long as it may read the same")
  func pages() throws {
    let bank = try GuardedServer.bank()
    func next(_ headers: [String: String]) throws -> String {
      "Account?limit=1&page=\(try bank.json("Account?limit=1", headers)["next"].text ?? "")"
    }
    for (owner, others) in [
      (bank.teller, [bank.bearer("tom", roles: ["teller"]), bank.bearer("tim"), bank.admin, [:]]),
      (bank.admin, [bank.bearer("rita", roles: ["keyway-admin"]), bank.bearer("root"), bank.teller]),
    ] {
      let page = try next(owner)
      #expect(try bank.get(page, owner).json["objects"].items.count == 1)
      for other in others { #expect(try bank.get(page, other).problem == "page-expired") }
    }
  }

  @Test("The addresses of one IPv6 network are one client")
  func networks() throws {
    let server = try TestServer {
      $0.access.proxies = ["127.0.0.1"]
      $0.server.streamsPerAddress = 2
    }
    func open(_ address: String) throws(LoopbackError) -> WireStream {
      try server.client.stream("/v1/streams", ["X-Forwarded-For": address])
    }
    let own = try [open("2001:db8:0:1::1"), open("2001:db8:0:1:ffff::2")]
    #expect(throws: LoopbackError.self) { try open("2001:db8:0:1:1:2:3:4") }
    let others = try [open("2001:db8:0:2::1"), open("192.0.2.1"), open("192.0.2.1"), open("::ffff:192.0.2.2")]
    #expect(throws: LoopbackError.self) { try open("::ffff:192.0.2.1") }
    withExtendedLifetime((own, others)) {}
  }

  @Test("Streams are counted by identity, wherever its clients are; without a token by address")
  func streams() throws {
    let guarded = try GuardedServer { $0.server.streamsPerAddress = 2 }
    let away = guarded.server.client(from: "127.0.0.2")
    let first = try guarded.client.stream("/v1/streams", guarded.reader)
    let second = try away.stream("/v1/streams", guarded.reader)
    for client in [guarded.client, away] {
      let full = try client.send("GET", "/v1/streams", guarded.reader.merging(["Accept": "text/event-stream"]) { $1 })
      #expect(full.status == 429 && full.problem == "too-many-streams" && full["Retry-After"] != nil)
    }
    let other = try guarded.client.stream("/v1/streams", guarded.bearer("bob"))
    withExtendedLifetime((first, second, other)) {}
    let open = try TestServer { $0.server.streamsPerAddress = 1 }
    let anonymous = try open.client.stream("/v1/streams")
    let refused = try open.client.send("GET", "/v1/streams", ["Accept": "text/event-stream"])
    #expect(refused.problem == "too-many-streams")
    let elsewhere = try open.client(from: "127.0.0.2").stream("/v1/streams")
    withExtendedLifetime((anonymous, elsewhere)) {}
  }
}
