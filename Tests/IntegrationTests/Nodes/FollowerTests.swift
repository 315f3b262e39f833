import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

/// Nodes that follow one another, as processes of their own.
@Suite("Followers", .timeLimit(.minutes(60))) struct FollowerTests {
  private static let streams = [
    "/v1/objects/Account/1/balance,owner.lastName,turnover?options=old,new,prior",
    "/v1/objects/Employee?filter=salary%20%3E%20100.0&sort=-salary,lastName&keys=fullName,salary"
      + "&section=department.name",
    "/v1/objects/Department/1?options=new,initial",
  ]

  /// Returns a transaction that sends an event to every stream of `streams`.
  private static func farewell(_ number: Int) -> String {
    """
    {"operations":[{"op":"set","object":"Account/1","keyPath":"balance","value":\(1_000 + number)},\
    {"op":"set","object":"Employee/1","keyPath":"salary","value":\(1_000 + number)}]}
    """
  }

  private static func revision(_ response: WireResponse) -> Int {
    response["Keyway-Cursor"]?.split(separator: "-").last.flatMap { Int($0) } ?? -1
  }

  /// Returns the events of a stream up to the one with an id.
  private static func told(_ stream: WireStream, upTo id: String) throws -> [String] {
    try stream.events { $0.id == id }.map(\.withoutRetry.text)
  }

  /// Returns everything that can be read, with the tags, as one text.
  private static func portrait(_ node: NodeProcess) throws -> String {
    var text = ""
    for target in ["/v1/objects", "/v1/objects/Employee?sort=-salary", "/v1/journal", "/v1/objects/Account/1"] {
      let response = try node.client.send("GET", target)
      text += "\(response.status) \(response["ETag"] ?? "") \(response["Keyway-Cursor"] ?? "")\n\(response.text)"
    }
    return text
  }

  @Test("Streams, tags, journals and answers of a leader, a follower and its follower are the same, byte for byte")
  func equality() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let near = try NodeProcess("b", in: directory, following: leader.url)
    let far = try NodeProcess("c", in: directory, following: near.url)
    let nodes = [leader, near, far]
    for node in nodes { #expect(node.awaitReady()) }
    let open = try nodes.map { node in try Self.streams.map { try node.client.stream($0) } }
    var writes = RandomWrites(seed: seed)
    var newest = 0
    var accepted = 0
    for _ in 0..<150 {
      let response = try nodes[writes.number(below: 3)].client.send(writes.next())
      let revision = Self.revision(response)
      #expect(revision >= newest, "seed \(seed): \(response.status) is of \(revision), after \(newest)")
      if response.isSuccess { accepted += 1 }
      newest = max(newest, revision)
      // A reader on any node sees at least the state that another node answered with.
      let reader = nodes[writes.number(below: 3)].client
      let cursor = "\(try leader.epoch)-\(newest)"
      let read = try reader.send("GET", "/v1/objects/Account/1", ["Keyway-Cursor": cursor])
      #expect(read.status == 200 && Self.revision(read) >= newest, "seed \(seed)")
    }
    #expect(accepted > 80)
    let last = try far.client.must("POST", "/v1/transactions", body: Self.farewell(0))
    let id = try #require(last["Keyway-Cursor"])
    for node in nodes { #expect(node.awaitRevision(Self.revision(last))) }
    for index in Self.streams.indices {
      let told = try open.map { try Self.told($0[index], upTo: id) }
      #expect(told[0].count > 10)
      #expect(told[1] == told[0] && told[2] == told[0], "seed \(seed): \(Self.streams[index])")
    }
    let portraits = try nodes.map(Self.portrait)
    #expect(portraits[1] == portraits[0] && portraits[2] == portraits[0], "seed \(seed)")
    let status = try nodes.map { try $0.status }
    #expect(status.map { $0["role"].text } == ["leader", "follower", "follower"])
    #expect(status.allSatisfy { $0["behind"].whole == 0 && $0["behindSeconds"].whole == 0 })
    #expect(Set(status.compactMap { $0["oldest"].text }).count == 1)
    for node in nodes.reversed() { try node.stop() }
    #expect(Set(try nodes.map { try #require($0.verified().split(separator: "\n").last) }).count == 1)
  }

  @Test("A stream that moves between nodes with its last id, while they are killed and come back, loses nothing")
  func restarts() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let nodes = try ["b", "c"].map { try NodeProcess($0, in: directory, following: leader.url) }
    for node in nodes { #expect(node.awaitReady()) }
    let target = Self.streams[0]
    let unbroken = try nodes[1].client.stream(target)
    var moving: [String] = []
    var id: String?
    var writes = RandomWrites(seed: seed)
    for round in 0..<8 {
      let node = [leader, nodes[0], nodes[1]][round % 3]
      let stream = try node.client.stream(target, id.map { ["Last-Event-ID": $0] } ?? [:])
      for _ in 0..<12 { _ = try leader.client.send(writes.next()) }
      let last = try leader.client.must("POST", "/v1/transactions", body: Self.farewell(round))
      id = last["Keyway-Cursor"]
      moving += try Self.told(stream, upTo: id ?? "")
      switch round {
      case 1, 4:
        // It misses the writes while it is dead.
        try nodes[0].kill()
        for _ in 0..<20 { _ = try leader.client.send(writes.next()) }
        try nodes[0].start()
      case 2, 5:
        try leader.kill()
        #expect(try nodes[1].client.send("GET", "/v1/objects/Account/1").status == 200)
        try leader.start()
      default: break
      }
    }
    #expect(try Self.told(unbroken, upTo: id ?? "") == moving, "seed \(seed)")
    let revision = try leader.revision
    for node in nodes { #expect(node.awaitRevision(revision)) }
    let portraits = try ([leader] + nodes).map(Self.portrait)
    #expect(portraits[1] == portraits[0] && portraits[2] == portraits[0], "seed \(seed)")
    for node in nodes {
      try node.stop()
      #expect(try node.verified().contains("all is well up to revision \(revision)"))
    }
  }

  @Test("A follower without a store says that it is alive, and not ready, until it has a copy")
  func waiting() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    try leader.client.must("PUT", "/v1/objects/Account/w", body: "{}")
    try leader.kill()
    let port = try LoopbackPort.free()
    let follower = try ChildProcess.start(
      PackageFolder.keyway,
      ["serve", "--port", "\(port)", "--store", directory.file("b"), "--follow", leader.url])
    defer { follower.send(SIGKILL) }
    let client = WireClient(port: port, keepingAlive: nil)
    #expect(Deadline().awaits { (try? client.send("GET", "/healthz"))?.status == 200 })
    for target in ["/readyz", "/v1/objects/Account/w"] {
      #expect(try client.send("GET", target).problem == "store-unavailable", "\(target)")
    }
    try leader.start()
    // The port is bound again.
    #expect(Deadline().awaits { (try? client.send("GET", "/readyz"))?.status == 200 })
    #expect(try client.send("GET", "/v1/objects/Account/w").status == 200)
    follower.send(SIGTERM)
    #expect(try follower.exitStatus() == 0)
  }

  @Test("A follower with an empty disk joins while writes go on, by a snapshot; one that slept too long begins anew")
  func joining() throws {
    let directory = try ScratchDirectory()
    let limits = ["history.revisions": "20", "snapshot.revisions": "40"]
    let leader = try NodeProcess("a", in: directory, settings: limits)
    var writes = RandomWrites(seed: seed)
    func write(_ count: Int) throws { for _ in 0..<count { _ = try leader.client.send(writes.next()) } }
    func base() throws -> Int { try leader.status["store"]["journal"]["base"].whole ?? 0 }
    try write(200)
    #expect(try Deadline().awaits { try base() > 20 })
    let writer = Locked(true)
    let group = DispatchGroup()
    let port = leader.port
    DispatchQueue.global().async(group: group) {
      var value = 0
      while writer.withLock({ $0 }) {
        value += 1
        _ = try? WireClient(port: port).send("PUT", "/v1/objects/Account/1/balance", body: "\(value)")
      }
    }
    // The leader would retain 40 revisions, which last for less time than a copy takes: it retains more for a joining
    // node.
    let before = try leader.revision
    let follower = try NodeProcess("b", in: directory, following: leader.url, settings: limits)
    #expect(follower.awaitReady())
    #expect(follower.awaitRevision(before + 500))
    writer.withLock { $0 = false }
    group.wait()
    #expect(!follower.server.child.errors.contains("beginning anew"), "\(follower.server.child.errors)")
    let revision = try leader.revision
    #expect(follower.awaitRevision(revision))
    #expect(try Self.objects(follower) == Self.objects(leader))
    #expect(try follower.status["oldest"] == leader.status["oldest"])
    // A follower without a disk joins in the same way, and can be followed itself after it has dropped its first
    // records.
    let inMemory = limits.merging(["store": "memory"]) { $1 }
    let volatile = try NodeProcess("m", in: directory, following: leader.url, settings: inMemory)
    // While it is stopped, the leader drops the records that it needs next.
    try follower.stop()
    let slept = try base()
    try write(300)
    #expect(try Deadline().awaits { try base() > revision && base() > slept })
    try follower.start()
    #expect(try follower.awaitRevision(leader.revision))
    #expect(follower.awaitReady())
    #expect(try Self.objects(follower) == Self.objects(leader))
    let volatileBase = { try volatile.status["store"]["journal"]["base"].whole ?? 0 }
    #expect(try Deadline().awaits { try volatileBase() > revision })
    let last = try NodeProcess("n", in: directory, following: volatile.url, settings: limits)
    for node in [volatile, last] {
      #expect(try node.awaitReady() && node.awaitRevision(leader.revision))
      #expect(try Self.objects(node) == Self.objects(leader))
    }
    for node in [last, volatile, follower] { try node.stop() }
    for node in [last, follower] { #expect(try node.verified().contains("all is well")) }
  }

  private static func objects(_ node: NodeProcess) throws -> String {
    let response = try node.client.send("GET", "/v1/objects")
    return "\(response["Keyway-Cursor"] ?? "")\n\(response.text)"
  }

  @Test("A follower that hears nothing goes on serving, is not ready, refuses writes, and waits for no state for ever")
  func silence() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let proxy = try FaultyProxy(to: leader.port)
    let settings = ["nodes.staleSeconds": "3", "nodes.waitSeconds": "1", "heartbeat.seconds": "1"]
    let follower = try NodeProcess("b", in: directory, following: proxy.url, settings: settings)
    let far = try NodeProcess("c", in: directory, following: follower.url, settings: settings)
    #expect(follower.awaitReady() && far.awaitReady())
    try follower.client.must("PUT", "/v1/objects/Account/1/balance", body: "5")
    proxy.refuse()
    let ahead = try leader.client.must("PUT", "/v1/objects/Account/1/balance", body: "6")
    let (cursor, tag) = (try #require(ahead["Keyway-Cursor"]), try #require(ahead["ETag"]))
    #expect(follower.awaitReady(false) && far.awaitReady(false))
    let own = try #require(follower.client.send("GET", "/v1/objects/Account/1")["Keyway-Cursor"])
    for node in [follower, far] {
      let client = node.client
      #expect(try client.send("GET", "/v1/objects/Account/1/balance").text == "5\n")
      let write = try client.send("PUT", "/v1/objects/Account/1/balance", body: "7")
      #expect(write.status == 503 && write.problem == "leader-unreachable" && write["Retry-After"] != nil)
      #expect(write["Keyway-Cursor"] == own)
      let target = "/v1/objects/Account/1/balance"
      for headers in [["Keyway-Cursor": cursor], ["If-None-Match": tag]] {
        let response = try client.send("GET", target, headers)
        #expect(response.status == 503 && response.problem == "behind", "\(headers)")
      }
      for headers in [["Last-Event-ID": cursor, "Accept": "text/event-stream"]] {
        #expect(try client.send("GET", target, headers).problem == "behind")
      }
      #expect(try client.send("GET", "\(target)?since=\(cursor)", ["Accept": "text/event-stream"]).problem == "behind")
      let stream = try client.stream(target)
      _ = try stream.next()
      let heartbeat = try #require(try stream.block())
      #expect(heartbeat.name == "heartbeat" && heartbeat.id == own)
      #expect(try node.status["behindSeconds"].whole ?? 0 >= 3)
    }
    try proxy.accept()
    #expect(follower.awaitReady() && far.awaitReady())
    let read = try far.client.send("GET", "/v1/objects/Account/1/balance", ["If-None-Match": tag])
    #expect(read.status == 304)
    #expect(try follower.client.send("PUT", "/v1/objects/Account/1/balance", body: "8").text == "8\n")
  }

  @Test("An object that ends by itself is ended by the node that takes the writes, once, and is gone on all")
  func leases() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let follower = try NodeProcess("b", in: directory, following: leader.url)
    #expect(follower.awaitReady())
    let target = "/v1/objects/Note/9"
    let made = try follower.client.send("PUT", target, ["Keyway-Lifetime": "1"], body: #"{"text":"soon gone"}"#)
    #expect(made.status == 201)
    #expect(try Deadline().awaits { try follower.client.send("GET", target).status == 404 })
    // The restart of a follower ends no session by itself either.
    let revision = Self.revision(made) + 1
    try follower.stop()
    try follower.start()
    #expect(try follower.revision == revision && leader.revision == revision)
    #expect(try leader.client.send("GET", target).status == 404)
  }

  @Test("A node that takes writes answers a tag or an event of the future at once")
  func future() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory, settings: ["nodes.waitSeconds": "600"])
    let future = "\(try leader.epoch)-99"
    let target = "/v1/objects/Account/1/balance"
    #expect(try leader.client.send("GET", target, ["If-None-Match": "\"\(future)\""]).status == 200)
    #expect(try leader.client.stream(target, ["Last-Event-ID": future]).next().name == "reset")
  }

  @Test("A request with an Idempotency-Key is carried out once, whichever nodes its retries come to")
  func idempotency() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let follower = try NodeProcess("b", in: directory, following: leader.url)
    #expect(follower.awaitReady())
    let request = WireRequest("POST", "/v1/objects/Note", ["Idempotency-Key": "one"], body: #"{"text":"once"}"#)
    let first = try follower.client.send(request)
    #expect(first.status == 201)
    for node in [leader, follower, leader] {
      let again = try node.client.send(request)
      #expect(again.status == 201 && again["Location"] == first["Location"] && again.body == first.body)
      #expect(again["Idempotency-Replayed"] == "true")
    }
    #expect(try follower.revision == leader.revision)
    // A condition is evaluated on the node that carries out the writes.
    let tag = try #require(follower.client.send("GET", "/v1/objects/Account/1/balance")["ETag"])
    try leader.client.must("PUT", "/v1/objects/Account/1/balance", body: "77")
    let stale = try follower.client.send("PUT", "/v1/objects/Account/1/balance", ["If-Match": tag], body: "78")
    #expect(stale.status == 412 && stale["ETag"] != nil)
    #expect(try follower.client.send("GET", "/v1/objects/Account/1/balance").text == "77\n")
    let problem = try follower.client.send(
      "PUT", "/v1/objects/Account/1/balance", ["X-Request-Id": "mine"], body: #""x""#)
    #expect(problem.status == 422 && problem.text.components(separatedBy: #""requestId":"mine""#).count == 2)
    let lease = try follower.client.send(
      "PUT", "/v1/objects/Note/7", ["Keyway-Lifetime": "stream=nothing"], body: #"{"text":"x"}"#)
    #expect(lease.status == 422 && lease.problem == "invalid-value")
  }
}
