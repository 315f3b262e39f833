import HTTPTypes
import Store
import Support
import TestKit
import Testing

@testable import HTTPServer
@testable import KeywayServer

@Suite("Responses that are kept with commits, and who is charged for them")
struct StoredResponseTests {
  private static func response(_ body: [UInt8]) -> Response {
    var fields: FieldSection = [.contentType: "application/json", .location: "/v1/objects/Note/1"]
    fields[.eTag] = "\"k3f9ab-7\""
    return Response(status: .created, fields: fields, body: body)
  }

  private static func request(_ key: String) throws -> IdempotentRequest {
    IdempotentRequest(key: try IdempotencyKey(key), fingerprint: RequestFingerprint(head: "POST /\n\n", body: [1, 2]))
  }

  @Test("A stored response is read back, with any bytes in the body; a truncated or changed one is none, or another")
  func roundTrip() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<100 {
      let body = (0..<Int.random(in: 0...600, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let stored = StoredResponse(request: try Self.request("k"), response: Self.response(body))
      let bytes = stored.bytes
      let found = try #require(StoredResponse(bytes))
      #expect(found.request?.key == stored.request?.key)
      #expect(found.request?.fingerprint == stored.request?.fingerprint)
      #expect(found.response.status == .created && found.response.fields == stored.response.fields)
      #expect(found.response.body == body)
      var changed = bytes
      for _ in 0..<4 {
        changed[Int.random(in: 0..<changed.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      _ = StoredResponse(changed)
      _ = StoredResponse(Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random))))
    }
  }

  @Test("Responses that earlier versions stored are read, and belong to the same request")
  func earlierForm() throws {
    let text =
      #"["a-1","POST /v1/objects/Note\nContent-Type: application/json\n\n{\"text\":\"Ã©\"}",201,"#
      + #"[["Location","/v1/objects/Note/1"]],"{\"@ref\":\"Note/1\"}\n"]"#
    let stored = try #require(StoredResponse(Array(text.utf8)))
    #expect(stored.request?.key.text == "a-1")
    #expect(stored.response.status == .created && stored.response.fields[.location] == "/v1/objects/Note/1")
    #expect(String(decoding: stored.response.body, as: UTF8.self) == "{\"@ref\":\"Note/1\"}\n")
    let sent = RequestFingerprint(
      head: "POST /v1/objects/Note\nContent-Type: application/json\n\n", body: Array(#"{"text":"é"}"#.utf8))
    #expect(stored.request?.fingerprint == sent)
  }

  @Test("A long request with a key goes into the journal once, and its key costs no more than that of a short one")
  func length() throws {
    let journal = MemoryJournal(identity: JournalIdentity(epoch: "long", schema: ""))
    let server = try TestServer(journal: journal)
    let text = String(repeating: "é", count: 100_000)
    let body = #"{"operations":[{"op":"set","object":"Note/1","keyPath":"text","value":"\#(text)"}]}"#
    try server.client.must("POST", "/v1/transactions", ["Idempotency-Key": "k"], body: body)
    let record = try #require(
      try journal.records(after: journal.bounds.last - 1, limit: 1, bytes: 1, waiting: .zero).first)
    #expect(record.attachment != nil)
    #expect(record.body.count < body.utf8.count + 1_000)
    let retry = try server.client.must("POST", "/v1/transactions", ["Idempotency-Key": "k"], body: body)
    #expect(retry["Idempotency-Replayed"] == "true")
    let lines = try server.client.must("GET", "/metrics").text.split(separator: "\n")
    let bytes = lines.first { $0.hasPrefix("keyway_idempotency_bytes ") }.flatMap { Int($0.split(separator: " ")[1]) }
    #expect(bytes ?? 0 > 0 && bytes ?? .max < 2_000)
  }

  @Test("After a restart keys are known that are older than the history, and count for no client")
  func restart() throws {
    let folder = try ScratchDirectory()
    let open = {
      try TestServer(
        objects: [],
        journal: SQLiteJournal(directory: folder.file("store"), durability: .synced) {
          JournalIdentity(epoch: "keys", schema: Fixture.schema)
        }
      ) { configuration in
        configuration.store.historyRevisions = 5
        configuration.idempotency.keys = 60
      }
    }
    func post(_ key: String, _ server: TestServer) throws -> WireResponse {
      try server.client.send("POST", "/v1/objects/Note", ["Idempotency-Key": key], body: "{}")
    }
    var server: TestServer? = try open()
    for number in 0..<20 { #expect(try post("k\(number)", #require(server)).status == 201) }
    server = nil
    let next = try open()
    for number in 0..<20 { #expect(try post("k\(number)", next)["Idempotency-Replayed"] == "true", "\(number)") }
    #expect(try next.revision == 20)
    // A single client may have thirty keys; beside the twenty recovered ones, which belong to no client, it may have
    // the same part of the rest.
    for number in 0..<19 { #expect(try post("n\(number)", next).status == 201) }
    #expect(try post("n19", next).status == 503)
  }

  /// Makes a server with a schema, of a store in a folder that soon drops its records.
  private static func forgetful(_ folder: ScratchDirectory, schema: String = Fixture.schema) throws -> TestServer {
    try TestServer(
      schema: schema, objects: [],
      journal: SQLiteJournal(directory: folder.file("store"), durability: .synced) {
        JournalIdentity(epoch: "keys", schema: schema)
      }, isMigrating: true
    ) { configuration in
      (configuration.store.historyRevisions, configuration.store.snapshotRevisions) = (5, 20)
    }
  }

  @Test("After a restart keys are known whose records are gone, also after two, and under another schema")
  func forgottenRecords() throws {
    let folder = try ScratchDirectory()
    func post(_ key: String, _ server: TestServer) throws -> WireResponse {
      try server.client.send("POST", "/v1/objects/Note", ["Idempotency-Key": key], body: #"{"text":"\#(key)"}"#)
    }
    var ids: [String] = []
    do {
      let server = try Self.forgetful(folder)
      for number in 0..<10 { ids.append(try #require(try post("k\(number)", server)["Location"])) }
      try Self.writeOn(server)
    }
    for schema in [Fixture.schema, Fixture.schema, Fixture.schema + "\n  Later: { keys: {} }"] {
      let server = try Self.forgetful(folder, schema: schema)
      for (number, id) in ids.enumerated() {
        let again = try post("k\(number)", server)
        #expect(again["Idempotency-Replayed"] == "true" && again["Location"] == id, "k\(number)")
      }
      #expect(try post("k0", server).status == 201)
      #expect(try server.client.send("POST", "/v1/objects/Note", ["Idempotency-Key": "k0"], body: "{}").status == 422)
      try Self.writeOn(server)
    }
  }

  /// Writes until the records that the server started with are dropped.
  private static func writeOn(_ server: TestServer) throws {
    let journal = server.server.store.journal
    let last = journal.bounds.last
    let deadline = Deadline()
    repeat {
      try server.client.must("PUT", "/v1/objects/Note/other", body: #"{"text":"x"}"#)
    } while journal.bounds.base < last && !deadline.hasPassed
    #expect(journal.bounds.base >= last)
  }

  @Test("The ledger says what keys hold; where it has no room the request is refused; what is too old is given back")
  func ledger() throws {
    let ledger = MemoryLedger(limit: 6_000, clientLimit: 5_000)
    let clock = Locked<UInt64>(0)
    let store = IdempotencyStore(limits: IdempotencyMemory.Limits(), ledger: ledger) { clock.withLock { $0 } }
    var kept = 0
    while case .first = store.begin(try Self.request("k\(kept)"), from: .unknown, bodyBytes: 100) {
      store.end(try IdempotencyKey("k\(kept)"), of: .unknown, with: Self.response([UInt8](repeating: 7, count: 300)))
      #expect(ledger.bytes(for: .idempotency) == store.counts.bytes)
      kept += 1
    }
    #expect((3...6).contains(kept))
    guard case .shareFull = store.begin(try Self.request("x"), from: .unknown, bodyBytes: 100) else {
      Issue.record("the client has its share of the ledger")
      return
    }
    #expect(store.counts.keys == kept && ledger.bytes(of: .unknown) == store.counts.bytes)
    clock.withLock { $0 = 1_000_000 }
    store.sweep()
    #expect(store.counts.keys == 0 && ledger.total == 0)
  }

  @Test("A body for which the ledger has no room is left out of what is remembered, and the key is kept")
  func leftOut() throws {
    let ledger = MemoryLedger(limit: 2_000, clientLimit: 2_000)
    let store = IdempotencyStore(limits: IdempotencyMemory.Limits(), ledger: ledger) { 0 }
    let request = try Self.request("k")
    guard case .first = store.begin(request, from: .unknown, bodyBytes: 0) else {
      Issue.record("there is room for it")
      return
    }
    store.end(request.key, of: .unknown, with: Self.response([UInt8](repeating: 7, count: 9_000)))
    guard case .answered(let response) = store.begin(request, from: .unknown, bodyBytes: 0) else {
      Issue.record("it was carried out")
      return
    }
    #expect(response.status == .created && response.body.isEmpty && response.fields[.location] != nil)
    #expect(ledger.bytes(for: .idempotency) == store.counts.bytes)
  }
}
