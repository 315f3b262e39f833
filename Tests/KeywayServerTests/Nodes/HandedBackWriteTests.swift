import Cluster
import HTTPServer
import KeyValueModel
import KeywayServer
import Store
import Support
import TestKit
import Testing

/// The outcome of a write on a peer that loses each race to append to another peer.
@Suite("Writes that are handed back", .timeLimit(.minutes(60)))
struct HandedBackWriteTests {
  /// A peer that appends first each time after `overtake`, and one that it overtakes.
  private let first: TestServer
  private let overtaken: TestServer
  private let journal: OvertakenJournal

  init() throws {
    let database = try PostgresServer.shared().makeDatabase()
    func open(_ port: UInt16) throws -> PostgresJournal {
      var options = PostgresJournal.Options()
      options.node = "http://127.0.0.1:\(port)"
      return try PostgresJournal(database, options: options) {
        JournalIdentity(epoch: "test", schema: Fixture.schema)
      }
    }
    let (one, other) = (try LoopbackPort.free(), try LoopbackPort.free())
    first = try TestServer(journal: open(one)) { ($0.port, $0.cluster) = (one, ClusterOptions()) }
    journal = OvertakenJournal(try open(other))
    overtaken = try TestServer(objects: [], journal: journal) { ($0.port, $0.cluster) = (other, ClusterOptions()) }
  }

  private func overtake() {
    let port = first.client.port
    journal.overtaking.withLock { overtaking in
      overtaking.append = {
        _ = try? WireClient(port: port).send("PUT", "/v1/objects/Account/2/visits", body: "1")
      }
    }
  }

  /// Returns the number of transactions of a writer.
  private func count(of writer: String) throws -> Int {
    let lines = try first.client.must("GET", "/v1/journal?since=\(first.epoch)-0&limit=10000").text
    return lines.split(separator: "\n").filter { $0.contains("\"writer\":\"\(writer)\"") }.count
  }

  @Test("A client's goes to the node that is first, with its body and fields, and is done once")
  func ofClient() throws {
    overtake()
    let client = overtaken.client
    let put = try client.send("PUT", "/v1/objects/Account/1/balance", ["Keyway-Writer": "w1"], body: "7")
    #expect(put.status == 200 && put.jsonText == "7")
    #expect(try client.send("GET", "/v1/objects/Account/1/balance").jsonText == "7")
    #expect(try count(of: "w1") == 1)
    // The peer has been overtaken by now, and forwards later writes at once.
    let overtakings = journal.overtaking.withLock { $0.count }
    #expect(overtakings > 1)
    let key = ["Idempotency-Key": "k", "Keyway-Writer": "w2"]
    let made = try client.send("POST", "/v1/objects/Account", key, body: "{\"balance\":1}")
    #expect(made.status == 201 && made["Location"] != nil)
    #expect(
      try client.send("POST", "/v1/objects/Account", key, body: "{\"balance\":1}")["Location"] == made["Location"])
    #expect(try count(of: "w2") == 1)
    #expect(journal.overtaking.withLock { $0.count } == overtakings)
  }

  @Test("One with an Idempotency-Key leaves no trace of it where it was given back, and is retried everywhere")
  func ofClientWithKey() throws {
    overtake()
    let key = ["Idempotency-Key": "k", "Keyway-Writer": "w"]
    let body = "{\"operations\":[{\"op\":\"set\",\"object\":\"Account/1\",\"keyPath\":\"visits\",\"value\":3}]}"
    let response = try overtaken.client.send("POST", "/v1/transactions", key, body: body)
    #expect(response.status == 200)
    for server in [overtaken, first] {
      let again = try server.client.send("POST", "/v1/transactions", key, body: body)
      #expect(again.status == 200 && again["Idempotency-Replayed"] == "true" && again.text == response.text)
    }
    #expect(try count(of: "w") == 1)
  }

  @Test("A refusal there is based on the newest state")
  func refusals() throws {
    overtake()
    let old = "\"\(first.epoch)-1\""
    let client = overtaken.client
    let response = try client.send("PUT", "/v1/objects/Account/1/balance", ["If-Match": old], body: "7")
    #expect(response.status == 412)
    let present = try first.client.send("GET", "/v1/objects/Account/1/balance")["ETag"]
    #expect(response["ETag"] == present)
  }

  @Test("One that another node has passed on to be done here goes back to that one, and nothing was changed")
  func ofNode() throws {
    overtake()
    let name = String(repeating: "0123456789abcdef", count: 2)
    let field = "\(name) \(first.epoch)-\(try overtaken.revision) final"
    let response = try overtaken.client.send(
      "PUT", "/v1/objects/Account/1/balance", ["Keyway-Request": field, "Keyway-Writer": "w"], body: "7")
    #expect(response.status == 503 && response.text.contains("nothing was changed"))
    #expect(try count(of: "w") == 0)
    // The name is still free: the write can be retried under it.
    let again = try first.client.send(
      "PUT", "/v1/objects/Account/1/balance", ["Keyway-Request": field, "Keyway-Writer": "w"], body: "7")
    #expect(again.status == 200)
    #expect(try count(of: "w") == 1)
  }

  @Test("A write that a silent peer may still do is not reported as refused, by any peer that gets the retry")
  func doubt() throws {
    let silent = try LoopbackListener()
    journal.overtaking.withLock { $0.pen = "http://127.0.0.1:\(silent.port)" }
    let name = String(repeating: "0123456789abcdef", count: 2)
    let fields = [
      "Keyway-Request": "\(name) \(first.epoch)-\(try overtaken.revision)", "If-Match": "\"\(first.epoch)-1\"",
    ]
    func put(_ fields: [String: String]) throws -> WireResponse {
      try overtaken.client.send("PUT", "/v1/objects/Account/1/balance", fields, body: "7")
    }
    let refused = try put(fields)
    #expect(refused.status == 503 && refused.text.contains("may still do what this node refuses (412)"))
    journal.overtaking.withLock { $0.pen = "http://127.0.0.1:\(first.client.port)" }
    let again = try put(fields.mapValues { $0.hasPrefix(name) ? "\($0) again" : $0 })
    #expect(again.status == 503 && again.text.contains("may still do what this node refuses (412)"))
    // No other node knows the other name.
    let other = try put(["Keyway-Request": fields["Keyway-Request"]!.replacing("a", with: "b"), "If-Match": "\"x-1\""])
    #expect(other.status == 412)
  }

  @Test("Writes of many clients at the overtaken node are all done, each once")
  func many() throws {
    overtake()
    let port = overtaken.client.port
    let failures = TestThreads.run(16) { index in
      let client = WireClient(port: port)
      for number in 0..<5 {
        let body = "{\"text\":\"\(index) \(number)\"}"
        try client.must("POST", "/v1/objects/Note", ["Keyway-Writer": "many"], body: body)
      }
    }
    #expect(failures == [])
    #expect(try count(of: "many") == 80)
  }
}
