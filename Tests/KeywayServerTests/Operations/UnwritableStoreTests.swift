import KeyValueModel
import Store
import Support
import TestKit
import Testing

@Suite("A store that takes no writes, as clients see it")
struct UnwritableStoreTests {
  @Test("It is not ready, and says why without naming a path; reading goes on; no write is needed to end it")
  func readiness() throws {
    let folder = try ScratchDirectory()
    let path = folder.file("deep/store")
    let journal = FaultyJournal(
      try SQLiteJournal(directory: path, durability: .synced) { JournalIdentity(epoch: "full", schema: "") })
    let server = try TestServer(journal: journal)
    #expect(try server.client.send("GET", "/readyz").status == 200)
    journal.faults.withLock { $0.append = .refused("\(path)/journal.sqlite: database or disk is full") }
    let write = try server.client.send("PUT", "/v1/objects/Account/1/visits", body: "1")
    let ready = try server.client.send("GET", "/readyz")
    for refused in [write, ready] {
      #expect(refused.status == 503 && refused.problem == "store-unavailable" && refused["Retry-After"] != nil)
      #expect(refused.text.contains("journal.sqlite: database or disk is full"), "\(refused.text)")
      #expect(!refused.text.contains(folder.path), "\(refused.text)")
    }
    let status = try server.client.must("GET", "/v1/status")
    #expect(status.json["store"]["condition"].text == "unavailable")
    #expect(!status.text.contains(folder.path))
    #expect(try server.client.send("GET", "/v1/objects/Account/1").status == 200)
    #expect(try server.client.send("GET", "/healthz").status == 200)
    #expect(try server.client.must("GET", "/metrics").text.contains("keyway_conditions_total{condition=\"store\"} 1\n"))
    journal.faults.withLock { $0.append = nil }
    #expect(try Deadline().awaits { try server.client.send("GET", "/readyz").status == 200 })
    #expect(try server.client.send("PUT", "/v1/objects/Account/1/visits", body: "1").status == 200)
  }

  @Test("A journal that cannot be read is told of without its path")
  func unreadable() throws {
    let folder = try ScratchDirectory()
    let journal = try SQLiteJournal(directory: folder.file("store"), durability: .synced) {
      JournalIdentity(epoch: "gone", schema: "")
    }
    let error = JournalError.damaged(place: folder.file("store/journal.sqlite"), reason: "it is not whole")
    #expect(journal.publicReason(error) == "journal.sqlite: it is not whole")
    #expect(journal.publicReason(.refused("\(folder.file("store")): cannot be read")) == "the store: cannot be read")
    journal.close()
  }
}
