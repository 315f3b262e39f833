import Foundation
import HTTPServer
import Journal
import KeyValueModel
import KeywayAPI
import LoopbackKit
import Testing

/// What belongs to an identity, and not to the address that it comes from.
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
