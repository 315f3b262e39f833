import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

/// Nodes that all take writes, over one PostgreSQL database.
@Suite("Peers")
struct PeerTests {
  @Test("Each of three peers takes writes; their streams have the same bytes, and their journals the same lines")
  func writing() throws {
    let group = try PeerGroup(3)
    let path = "/v1/objects/Account/1/balance,owner.lastName?options=initial,old,new"
    let begin = try group[0].send("PUT", "/v1/objects/Account/1/balance", body: "1")
    for index in 0..<3 {
      #expect(try group.get("/v1/objects/Account/1/balance", from: index, since: begin["Keyway-Cursor"]).text == "1\n")
    }
    let streams = try (0..<3).map { try group[$0].stream(path) }
    var last = begin["Keyway-Cursor"]
    for number in 2...20 {
      let write = try group[number].must("PUT", "/v1/objects/Account/1/balance", body: "\(number)")
      last = write["Keyway-Cursor"]
      // Read from any peer, with the cursor of the write, the state includes the write.
      let read = try group.get("/v1/objects/Account/1/balance", from: number + 1, since: last)
      #expect(read.text == "\(number)\n")
    }
    let texts = try streams.map { stream in try (0..<20).map { _ in try stream.next().withoutRetry.text } }
    #expect(texts[0] == texts[1] && texts[0] == texts[2])
    #expect(texts[0].last?.contains("\"new\":20") == true)
    let journals = try (0..<3).map { try group.journal(of: $0, since: last) }
    #expect(journals[0].count == 21)
    #expect(journals[0] == journals[1] && journals[0] == journals[2])
    let status = try group.peers[1].status
    #expect(status["role"].text == "peer" && status["behind"].whole == 0 && status["behindSeconds"].whole == 0)
    #expect(try group[0].send("GET", "/metrics").text.contains("keyway_peer_silence_seconds 0"))
  }

  @Test("Of three writes with the same If-Match, each by another peer, one succeeds and two are 412")
  func conditions() throws {
    let group = try PeerGroup(3)
    let ports = group.peers.map(\.port)
    var cursor: String?
    for round in 0..<15 {
      let tag = try group.get("/v1/objects/Account/1/balance", from: round, since: cursor)["ETag"] ?? ""
      let answers = Locked<[WireResponse]>([])
      DispatchQueue.concurrentPerform(iterations: 3) { index in
        let answer = try? WireClient(port: ports[index]).send(
          "PUT", "/v1/objects/Account/1/balance", ["If-Match": tag], body: "\(1_000 + round * 3 + index)")
        if let answer { answers.withLock { $0.append(answer) } }
      }
      let all = answers.withLock { $0 }
      #expect(all.map(\.status).sorted() == [200, 412, 412], "round \(round)")
      cursor = all.first { $0.status == 200 }?["Keyway-Cursor"]
    }
    #expect(try group.journal(of: 0, since: cursor).count == 16)
  }

  @Test("A peer that has not heard of an object yet never says that it is not there")
  func refusals() throws {
    let group = try PeerGroup(2)
    for number in 0..<20 {
      let id = "/v1/objects/Note/n\(number)"
      try group[number].must("PUT", id, ["If-None-Match": "*"], body: #"{"text":"new"}"#)
      #expect(try group[number + 1].send("PUT", "\(id)/text", body: "\"changed\"").status == 200)
      #expect(try group[number].send("PUT", id, ["If-None-Match": "*"], body: #"{"text":"x"}"#).status == 412)
      try group[number + 1].must("DELETE", id)
      #expect(try group[number].send("PUT", "\(id)/text", body: "\"late\"").status == 404)
    }
  }

  @Test("A client can use tags and cursors of one peer at another")
  func naming() throws {
    let group = try PeerGroup(3)
    let path = "/v1/objects/Account/1/balance"
    for number in 0..<20 {
      let write = try group[number].must("PUT", path, body: "\(number)")
      let (tag, cursor) = (write["ETag"] ?? "", write["Keyway-Cursor"] ?? "")
      #expect(try group[number + 1].send("GET", path, ["If-None-Match": tag]).status == 304)
      #expect(try group[number + 2].send("PUT", path, ["If-Match": tag], body: "-1").status == 200)
      let stream = try group[number + 1].stream("\(path)?options=new", ["Last-Event-ID": cursor])
      var event = try stream.next()
      while event.changes.isEmpty { event = try stream.next() }
      #expect(event.name == "change" && event.changes.first?["new"].whole == -1)
    }
    let epoch = try group.peers[0].status["epoch"].text ?? ""
    let future = try group[0].stream("\(path)?since=\(epoch)-999999")
    #expect(try future.next().json["reason"].text == "epoch")
    #expect(try group[0].send("PUT", path, ["If-Match": "\"\(epoch)-999999\""], body: "1").status == 412)
  }

  @Test("A POST with an Idempotency-Key applies once, whichever peers it is sent to, also at the same time")
  func idempotency() throws {
    let group = try PeerGroup(3)
    let ports = group.peers.map(\.port)
    for round in 0..<10 {
      let locations = Locked<Set<String>>([])
      DispatchQueue.concurrentPerform(iterations: 3) { index in
        let location = Result { try Self.location(of: "key-\(round)", at: WireClient(port: ports[index])) }
        locations.withLock { _ = $0.insert((try? location.get()) ?? "\(location)") }
      }
      let found = locations.withLock { $0 }
      #expect(found.count == 1 && found.first?.hasPrefix("/v1/objects/Note/") == true, "round \(round): \(found)")
    }
    try group.replace(1)
    let again = try group[1].send(
      "POST", "/v1/objects/Note", ["Idempotency-Key": "key-9"], body: #"{"text":"once"}"#)
    #expect(again["Idempotency-Replayed"] == "true")
    #expect(try group[1].json("/v1/objects/Note?filter=text%20%3D%3D%20%22once%22")["count"].whole == 10)
  }

  /// Returns the location of a note that was created under an idempotency key. Retries while another request with the
  /// key is in progress.
  private static func location(of key: String, at client: WireClient) throws -> String {
    let deadline = Deadline()
    while true {
      let answer = try client.send(
        "POST", "/v1/objects/Note", ["Idempotency-Key": key], body: #"{"text":"once"}"#)
      if answer.problem == "idempotency-key-in-use", !deadline.hasPassed { continue }
      guard answer.status == 201 else { throw LoopbackError(.unexpectedStatus(answer.status), answer.text) }
      return answer["Location"] ?? ""
    }
  }

  @Test("Every acknowledged write is there once, at its revision, while peers are killed and come back")
  func killing() throws {
    let group = try PeerGroup(3)
    // The acknowledged responses, by revision.
    let acknowledged = Locked<[Int: String]>([:])
    let ports = Locked(group.peers.map(\.port))
    let isFinished = Locked(false)
    let writers = DispatchGroup()
    for writer in 0..<6 {
      DispatchQueue.global().async(group: writers) {
        var number = 0
        while !isFinished.withLock({ $0 }) {
          number += 1
          let text = "writer \(writer) number \(number)"
          let client = WireClient(port: ports.withLock { $0[writer % 3] })
          guard let answer = try? client.send("POST", "/v1/objects/Note", body: "{\"text\":\"\(text)\"}"),
            answer.status == 201,
            let revision = answer["Keyway-Cursor"]?.split(separator: "-").last.flatMap({ Int($0) })
          else { continue }
          acknowledged.withLock { $0[revision] = text }
        }
      }
    }
    for index in 0..<3 {
      let before = acknowledged.withLock { $0.count }
      #expect(Deadline().awaits { acknowledged.withLock { $0.count } > before + 100 })
      try group.replace(index)
      let port = group.peers[index].port
      ports.withLock { $0[index] = port }
    }
    isFinished.withLock { $0 = true }
    writers.wait()
    let known = acknowledged.withLock { $0 }
    let epoch = try group.peers[0].status["epoch"].text ?? ""
    let last = known.keys.max().map { "\(epoch)-\($0)" }
    let journals = try (0..<3).map { try group.journal(of: $0, since: last) }
    #expect(journals[0] == journals[1] && journals[0] == journals[2])
    for (revision, text) in known {
      #expect(journals[0][revision - 1].contains("\"\(text)\""))
      #expect(journals[0].count { $0.contains("\"\(text)\"") } == 1)
    }
    #expect(known.count > 300)
  }

  @Test("Without their database peers go on reading, and refuse writes; when it is back they go on by themselves")
  func restarting() throws {
    let own = try PostgresServer()
    let group = try PeerGroup(2, on: own, settings: ["nodes.staleSeconds": "3"])
    let written = try group[0].must("PUT", "/v1/objects/Account/1/balance", body: "5")
    _ = try group.get("/v1/objects/Account/1/balance", from: 1, since: written["Keyway-Cursor"])
    let streams = try (0..<2).map { try group[$0].stream("/v1/objects/Account/1/balance?options=initial,new") }
    for stream in streams { _ = try stream.next() }
    try own.stop()
    for index in 0..<2 {
      #expect(Deadline().awaits { (try? group[index].send("GET", "/readyz"))?.status == 503 })
      #expect(try group[index].send("GET", "/v1/objects/Account/1/balance").text == "5\n")
      let refused = try group[index].send("PUT", "/v1/objects/Account/1/balance", body: "6")
      #expect(refused.status == 503 && refused.problem == "store-unavailable" && refused["Retry-After"] != nil)
      // Nor is a request refused because of a state that may be old.
      #expect(try group[index].send("PUT", "/v1/objects/Note/none/text", body: "1").status == 503)
    }
    try own.start()
    for index in 0..<2 {
      #expect(Deadline().awaits { (try? group[index].send("GET", "/readyz"))?.status == 200 })
      try group[index].must("PUT", "/v1/objects/Account/1/balance", body: "\(10 + index)")
    }
    let texts = try streams.map { stream in try (0..<2).map { _ in try stream.next().text } }
    #expect(texts[0] == texts[1])
    #expect(texts[0].last?.contains("11") == true)
  }

  @Test("A peer whose writes fail without their database is ready up to nodes.staleSeconds, and serves what it has")
  func tolerance() throws {
    let own = try PostgresServer()
    let group = try PeerGroup(1, on: own, settings: ["nodes.staleSeconds": "3600", "heartbeat.seconds": "1"])
    try group[0].must("PUT", "/v1/objects/Account/1/balance", body: "5")
    let stream = try group[0].stream("/v1/objects/Account/1/balance")
    let first = try stream.next()
    try own.stop()
    for _ in 0..<2 {
      #expect(try group[0].send("PUT", "/v1/objects/Account/1/balance", body: "6").status == 503)
      #expect(try group[0].send("GET", "/readyz").status == 200)
      #expect(try group[0].send("GET", "/v1/objects/Account/1/balance").text == "5\n")
    }
    #expect(try group[0].json("/v1/status")["store"]["condition"].text == "unavailable")
    let heartbeat = try #require(try stream.block())
    #expect(heartbeat.name == "heartbeat" && heartbeat.id == first.id)
    try own.start()
    #expect(
      Deadline().awaits { (try? group[0].send("PUT", "/v1/objects/Account/1/balance", body: "6"))?.status == 200 })
  }

  @Test("If the database lost records that a peer has seen, all peers restart their history with another epoch")
  func lostRecords() throws {
    let group = try PeerGroup(2)
    for number in 0..<5 { try group[number].must("PUT", "/v1/objects/Account/1/balance", body: "\(number)") }
    let cursor = try group.peers[0].cursor
    _ = try group.get("/v1/objects/Account/1/balance", from: 1, since: cursor)
    let epoch = try group.peers[0].status["epoch"].text ?? "?"
    let streams = try (0..<2).map { try group[$0].stream("/v1/objects/Account/1/balance") }
    try group.postgres.execute(
      """
      BEGIN; DELETE FROM keyway.records WHERE revision > 3;
      UPDATE keyway.head SET last = 3, digest = (SELECT digest FROM keyway.records WHERE revision = 3); COMMIT
      """, in: group.database)
    for (peer, stream) in zip(group.peers, streams) {
      var event = try stream.next()
      while event.name != "bye" { event = try stream.next() }
      #expect(peer.child.errors.contains("the journal is over; beginning anew"))
      let isAnew = Deadline().awaits {
        (try? peer.client.send("GET", "/readyz"))?.status == 200 && (try? peer.cursor.hasPrefix(epoch)) == false
      }
      #expect(isAnew, "\(peer.child.errors)")
      #expect(try peer.revision == 3)
      let resumed = try peer.client.stream("/v1/objects/Account/1/balance?since=\(cursor)")
      #expect(try resumed.next().json["reason"].text == "epoch")
    }
    #expect(try group.peers[0].status["epoch"].text == group.peers[1].status["epoch"].text)
    let write = try group[1].must("PUT", "/v1/objects/Account/1/balance", body: "77")
    #expect(try group.get("/v1/objects/Account/1/balance", from: 0, since: write["Keyway-Cursor"]).text == "77\n")
    for peer in group.peers { #expect(try peer.stop() == 0) }
  }

  @Test("Only one of those that start with an empty database fills it; a node with another schema does not start")
  func beginning() throws {
    let postgres = try PostgresServer.shared()
    let database = try postgres.makeDatabase()
    let children = try (0..<3).map { _ in
      try ChildProcess.start(PackageFolder.keyway, ["serve", "--port", "0", "--journal", database])
    }
    for child in children {
      #expect(Deadline().awaits { child.errors.contains("serving") || !child.isRunning })
      #expect(child.errors.contains("objects=23"), "\(child.errors)")
    }
    #expect(try postgres.execute("SELECT count(*) FROM keyway.records", in: database) == "1")
    let folder = try ScratchDirectory()
    let schema = "\(folder.path)/other.yaml"
    try "entities: {Other: {keys: {name: {type: string}}}}".write(toFile: schema, atomically: true, encoding: .utf8)
    for child in children { child.send(SIGTERM) }
    let refused = try ChildProcess.keyway("serve", "--port", "0", "--journal", database, "--schema", schema)
    #expect(refused.status == 1)
    #expect(refused.errors.contains("another schema"))
  }
}
