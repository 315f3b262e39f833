import Foundation
import KeyValueModel
import TestKit
import Testing

/// The local caches that peers keep of their journal.
@Suite("The caches of peers", .timeLimit(.minutes(60)))
struct PeerCacheTests {
  private let folder: ScratchDirectory
  private let path = "/v1/objects/Account/1/balance"

  init() throws { folder = try ScratchDirectory() }

  private var store: String { "\(folder.path)/cache" }

  /// Waits until a peer's cache has reached the revision that it serves.
  private func isKept(_ peer: ServerProcess) throws -> Bool {
    try Deadline().awaits {
      let status = try peer.status
      return status["cached"].whole == status["revision"].whole
    }
  }

  /// Starts a peer on the database of a group, like `PeerGroup.start`, but without waiting until it is ready.
  private func start(_ group: PeerGroup, _ settings: [String: String] = [:]) throws -> ServerProcess {
    try ServerProcess("--journal", group.database, settings: settings.merging(["store": store]) { given, _ in given })
  }

  private func lines(_ peer: ServerProcess) throws -> [String] {
    let epoch = try peer.status["epoch"].text ?? ""
    return try peer.client.must("GET", "/v1/journal?since=\(epoch)-0&limit=10000").text.split(separator: "\n").map(
      String.init)
  }

  /// Puts numbers at a peer. Returns the cursor of each.
  @discardableResult
  private func write(_ numbers: Range<Int>, _ peer: ServerProcess) throws -> [String] {
    try numbers.map { try peer.client.must("PUT", path, body: "\($0)")["Keyway-Cursor"] ?? "" }
  }

  @Test("A peer that starts again begins with its cache, and reads only what came after from the database")
  func restarting() throws {
    let group = try PeerGroup(1)
    var peer = try group.start(["store": store])
    let cursors = try write(0..<200, peer)
    #expect(try isKept(peer))
    #expect(try peer.stop() == 0)
    let late = try write(200..<220, group.peers[0])
    let expected = try lines(group.peers[0])
    // Without the cache the peer cannot start.
    try group.postgres.execute("DELETE FROM keyway.records WHERE revision < 201", in: group.database)
    peer = try group.start(["store": store])
    #expect(!peer.child.errors.contains("the cache"), "\(peer.child.errors)")
    #expect(try peer.cursor == late.last)
    #expect(try lines(peer) == expected)
    let stream = try peer.client.stream("\(path)?options=new", ["Last-Event-ID": cursors[197]])
    var events: [Value] = []
    while events.last?.whole != 219 { events += try stream.next().changes.map { $0["new"] } }
    #expect(events.last?.whole == 219)
    #expect(try isKept(peer))
    #expect(try peer.stop() == 0)
    let verified = try ChildProcess.keyway("store", "verify", "--store", store)
    #expect(verified.status == 0 && verified.output.contains("\(late.count + 201)"), "\(verified)")
  }

  @Test("A peer whose database does not answer begins with its cache, and goes on by itself when it answers")
  func alone() throws {
    let own = try PostgresServer()
    let group = try PeerGroup(0, on: own, settings: ["nodes.staleSeconds": "3"])
    var peer = try group.start(["store": store])
    let cursors = try write(0..<20, peer)
    let expected = try lines(peer)
    #expect(try isKept(peer))
    try own.stop()
    #expect(try peer.stop() == 0)
    peer = try start(group, ["nodes.staleSeconds": "3", "heartbeat.seconds": "1"])
    #expect(peer.child.errors.contains("the journal does not answer; beginning with the cache"))
    #expect(try peer.client.send("GET", path).text == "19\n")
    #expect(try peer.cursor == cursors.last)
    #expect(try lines(peer) == expected)
    let stream = try peer.client.stream("\(path)?options=new", ["Last-Event-ID": cursors[17]])
    var event = try stream.next()
    while event.changes.last?["new"].whole != 19 { event = try stream.next() }
    #expect(event.id == cursors.last)
    #expect(Deadline().awaits { (try? peer.client.send("GET", "/readyz"))?.status == 503 })
    #expect(try peer.client.send("PUT", path, body: "20").problem == "store-unavailable")
    #expect(try peer.client.send("PUT", "/v1/objects/Note/none/text", body: "1").status == 503)
    #expect(try peer.status["role"].text == "peer")
    try own.start()
    #expect(Deadline().awaits { (try? peer.client.send("GET", "/readyz"))?.status == 200 })
    let next = try write(20..<21, peer)
    while event.changes.last?["new"].whole != 20 { event = try stream.next() }
    #expect(event.id == next[0])
    #expect(try isKept(peer))
  }

  @Test("An empty database begins a new journal, and does not cost the last copy of the one that it had")
  func missing() throws {
    let group = try PeerGroup(0)
    let peer = try group.start(["store": store])
    try write(0..<3, peer)
    #expect(try isKept(peer))
    let epoch = try peer.status["epoch"]
    #expect(try peer.stop() == 0)
    try group.postgres.execute("DROP SCHEMA keyway CASCADE", in: group.database)
    let anew = try group.start(["store": store])
    #expect(try anew.status["epoch"] != epoch && anew.child.errors.contains("\(store).aside"), "\(anew.child.errors)")
    try write(7..<8, anew)
    #expect(try isKept(anew))
    #expect(try anew.stop() == 0)
    let promoted = try ChildProcess.keyway("store", "promote", "--store", store + ".aside")
    #expect(promoted.status == 0, "\(promoted.errors)")
    let single = try ServerProcess("--store", store + ".aside")
    #expect(try single.client.send("GET", path).text == "2\n")
    // The next start finds the new cache.
    #expect(try group.start(["store": store]).client.send("GET", path).text == "7\n")
  }

  @Test("A cache of another epoch is dropped, and begun anew; clients are told")
  func otherEpoch() throws {
    let own = try PostgresServer()
    let group = try PeerGroup(0, on: own)
    var peer = try group.start(["store": store])
    let cursor = try write(0..<5, peer)[4]
    #expect(try isKept(peer))
    #expect(try peer.stop() == 0)
    try own.execute("UPDATE keyway.head SET epoch = 'another'", in: group.database)
    peer = try group.start(["store": store])
    #expect(peer.child.errors.contains("the cache is dropped, and begun anew"))
    #expect(try peer.status["epoch"].text == "another" && isKept(peer))
    #expect(try peer.client.stream("\(path)?since=\(cursor)").next().json["reason"].text == "epoch")
    try write(5..<7, peer)
    #expect(try isKept(peer))
    #expect(try peer.stop() == 0)
    // The same if that is detected only later.
    try own.execute("UPDATE keyway.head SET epoch = 'third'", in: group.database)
    try own.stop()
    peer = try start(group)
    #expect(try peer.status["epoch"].text == "another")
    let stream = try peer.client.stream(path)
    let seen = try stream.next().id ?? ""
    try own.start()
    let isAnew = Deadline().awaits {
      (try? peer.client.send("GET", "/readyz"))?.status == 200 && (try? peer.status["epoch"].text) == "third"
    }
    #expect(isAnew, "\(peer.child.errors)")
    #expect(try peer.client.stream("\(path)?since=\(seen)").next().json["reason"].text == "epoch")
    try write(7..<8, peer)
    #expect(try isKept(peer))
  }

  @Test("A cache that has what the database lost ends the epoch, also where others have gone on; none of it is served")
  func otherDigest() throws {
    let group = try PeerGroup(0)
    var peer = try group.start(["store": store])
    let cursor = try write(0..<10, peer)[9]
    #expect(try isKept(peer))
    #expect(try peer.stop() == 0)
    let epoch = cursor.split(separator: "-")[0]
    try group.postgres.execute(
      """
      BEGIN; DELETE FROM keyway.records WHERE revision > 5;
      UPDATE keyway.head SET last = 5, digest = (SELECT digest FROM keyway.records WHERE revision = 5); COMMIT
      """, in: group.database)
    // This peer knows only the shorter history, and assigns the lost revisions to other writes.
    let other = try group.start()
    try write(100..<120, other)
    #expect(try other.status["epoch"].text == String(epoch))
    peer = try group.start(["store": store])
    #expect(peer.child.errors.contains("the cache is dropped, and begun anew"))
    let next = try peer.status["epoch"].text
    #expect(next != nil && next != String(epoch))
    #expect(Deadline().awaits { (try? other.status["epoch"].text) == next })
    #expect(Deadline().awaits { (try? other.client.send("GET", "/readyz"))?.status == 200 })
    #expect(try peer.client.send("GET", path).text == "119\n")
    #expect(try lines(peer) == lines(other))
    #expect(try peer.client.stream("\(path)?since=\(cursor)").next().json["reason"].text == "epoch")
  }

  @Test("A peer that is killed while its cache is written starts with the cache, and lacks nothing")
  func killing() throws {
    let group = try PeerGroup(1, settings: ["history.revisions": "50", "snapshot.revisions": "40"])
    var last = ""
    for round in 0..<6 {
      let peer = try group.start(["store": store])
      #expect(!peer.child.errors.contains("the cache"), "\(peer.child.errors)")
      let port = peer.port
      let writer = DispatchGroup()
      DispatchQueue.global().async(group: writer) {
        let client = WireClient(port: port)
        // Until the peer is gone: a slow peer may refuse a write, and take the next.
        while (try? client.send("PUT", "/v1/objects/Account/1/balance", body: "\(round)")) != nil {}
      }
      let before = try peer.revision
      #expect(Deadline().awaits { ((try? peer.revision) ?? 0) > before + 30 + round * 17 })
      peer.child.send(SIGKILL)
      _ = try peer.child.exitStatus()
      writer.wait()
      last = try write(round * 100..<round * 100 + 1, group.peers[0])[0]
      let verified = try ChildProcess.keyway("store", "verify", "--store", store)
      #expect(verified.status == 0, "\(verified)")
    }
    let peer = try group.start(["store": store])
    #expect(try peer.cursor == last)
    #expect(try peer.client.json("/v1/objects/Account") == group[0].json("/v1/objects/Account"))
    #expect(try peer.status["oldest"].text == group.peers[0].status["oldest"].text)
  }

  @Test("A peer that slept while the others forgot what it lacks begins anew, with the same epoch")
  func forgotten() throws {
    let settings = ["history.revisions": "20", "snapshot.revisions": "20"]
    let group = try PeerGroup(1, settings: settings)
    let peer = try group.start(["store": store])
    try write(0..<5, peer)
    #expect(try isKept(peer))
    peer.child.send(SIGSTOP)
    var last = ""
    let isForgotten = try Deadline().awaits {
      last = try write(0..<50, group.peers[0]).last ?? ""
      return try group.postgres.execute("SELECT base > 60 FROM keyway.head", in: group.database) == "t"
    }
    #expect(isForgotten)
    peer.child.send(SIGCONT)
    #expect(Deadline().awaits { (try? peer.cursor) == last }, "\(peer.child.errors)")
    #expect(try isKept(peer))
    #expect(try peer.client.json("/v1/objects/Account") == group[0].json("/v1/objects/Account"))
    #expect(try peer.stop() == 0)
  }

  @Test("A store that is a node's own, or a follower's, is no cache; nor is a cache any of these")
  func marks() throws {
    let group = try PeerGroup(1)
    let own = "\(folder.path)/own"
    let single = try ServerProcess("--store", own, "--set", "nodes.followers=true")
    let follower = try ServerProcess("--store", "\(folder.path)/copy", "--follow", single.url)
    let peer = try group.start(["store": store])
    for process in [follower, single, peer] { #expect(try process.stop() == 0) }
    func refused(_ arguments: String..., words: String) throws {
      let (status, _, errors) = try ChildProcess.run(PackageFolder.keyway, ["serve", "--port", "0"] + arguments)
      #expect(status == 1 && errors.contains(words), "\(errors)")
    }
    try refused("--journal", group.database, "--store", own, words: "this store is a node's own")
    try refused("--journal", group.database, "--store", "\(folder.path)/copy", words: "this store follows http:")
    try refused("--store", store, words: "this store follows postgres://127.0.0.1:")
    try refused(
      "--follow", "http://127.0.0.1:1", "--store", store, words: "is a peer's cache of the journal in postgres://")
    #expect(try ServerProcess("--store", own).stop() == 0)
  }
}
