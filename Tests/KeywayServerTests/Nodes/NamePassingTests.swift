import Cluster
import Foundation
import KeyValueModel
import KeywayServer
import Store
import TestKit
import Testing

/// Two servers of one epoch, one of which knows the other: requests to it that name streams and pages of the other.
@Suite("Names of streams and pages at another node") struct NamePassingTests {
  /// Two servers that share keys, and have histories of their own.
  private final class World {
    let maker: GuardedServer
    let other: TestServer

    init(streams: Int = 10, streamsPerClient: Int = 10) throws {
      func journal() -> MemoryJournal { MemoryJournal(identity: JournalIdentity(epoch: "shared", schema: "")) }
      maker = try GuardedServer(journal: journal())
      let path = maker.path
      let url = "http://127.0.0.1:\(maker.server.server.port)"
      other = try TestServer(objects: [], journal: journal()) {
        $0.access.keys = path
        $0.cluster.followers = true
        $0.cluster.urls = [url]
        $0.cluster.forwarding.streams = streams
        $0.cluster.forwarding.streamsPerClient = streamsPerClient
        $0.waits.seconds = 1
      }
      while try other.revision(maker.admin) < maker.server.revision(maker.admin) { try advance() }
      try introduce(url)
    }

    /// Advances the other server by one revision.
    func advance() throws {
      try other.client.must("PUT", "/v1/objects/Note/1", maker.admin, body: "{\"text\":\"\(UUID().uuidString)\"}")
    }

    /// Introduces a node to the other server, as if it followed it.
    func introduce(_ url: String) throws {
      let name = url.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      let digest = String(JournalDigest.start.value, radix: 16)
      try other.client.must(
        "GET", "/v1/nodes/records?epoch=shared&after=0&digest=\(digest)&node=\(name)", maker.admin)
    }
  }

  private static let cells = #"{"cells":{"one":{"object":"Account/1","keyPaths":["balance"]}}}"#

  private func open(_ world: World, _ token: [String: String]) throws -> (stream: WireStream, url: String) {
    let headers = token.merging(["Content-Type": "application/json"]) { $1 }
    let stream = try world.maker.client.stream("/v1/streams", headers, method: "POST", body: Self.cells)
    return (stream, try #require(try stream.next().json["url"].text))
  }

  @Test("Cells are read, bound, changed and ended at another node, for whom the stream is, and for no one else")
  func cells() throws {
    let world = try World()
    let (maker, other) = (world.maker, world.other.client)
    let (ann, bob) = (maker.bearer("ann", roles: ["reader"]), maker.bearer("bob", roles: ["reader"]))
    let admin = maker.admin
    let (stream, url) = try open(world, admin)
    for target in [url, "\(url)/cells", "\(url)/cells/one"] {
      let here = try maker.client.send("GET", target, admin)
      let there = try other.send("GET", target, admin)
      #expect(here.status == 200 && there.status == 200 && there.body == here.body, "\(target)")
      #expect(there["Content-Type"] == here["Content-Type"] && there["Keyway-Cursor"] == here["Keyway-Cursor"])
      #expect(try other.send("GET", target, ann).problem == "unknown-stream")
      #expect(try other.send("GET", target).problem == "unauthenticated")
      #expect(try other.send("HEAD", target, admin).status == 200)
    }
    let bound = try other.send(
      "PUT", "\(url)/cells/two", admin, body: #"{"object":"Account/2","keyPaths":["balance"]}"#)
    #expect(bound.status == 200)
    #expect(try stream.events { $0.changes.first?["cell"].text == "two" }.last?.changes.first?["new"].whole == 40)
    try other.must("PATCH", "\(url)/cells/two", admin, body: #"{"object":"Account/1"}"#)
    #expect(try stream.events { $0.changes.first?["cell"].text == "two" }.last?.changes.first?["new"].whole == 100)
    // Problems come from the other node, with the request's own id.
    let unknown = try other.send(
      "PATCH", "\(url)/cells/none", admin.merging(["X-Request-Id": "mine"]) { $1 }, body: "{}")
    #expect(unknown.problem == "unknown-cell" && unknown["X-Request-Id"] == "mine")
    #expect(unknown.text.components(separatedBy: #""requestId":"mine""#).count == 2)
    #expect(try other.send("PUT", "\(url)/cells/x", admin, body: "{").problem == "malformed-json")
    #expect(try other.send("GET", "\(url)/cells?x=1", admin).problem == "malformed-query")
    #expect(try other.send("DELETE", "\(url)/cells/two", admin).status == 204)
    #expect(try other.send("DELETE", "\(url)/cells", bob).problem == "unknown-stream")
    #expect(try other.send("DELETE", url, admin).status == 204)
    #expect(try stream.rest().map(\.name) == ["bye"])
    #expect(try other.send("GET", url, admin).problem == "unknown-stream")
  }

  @Test("HEAD of a stream of another node says what that one says, and so it does of one that is not there")
  func heads() throws {
    let world = try World()
    let (maker, other) = (world.maker, world.other.client)
    let (stream, url) = try open(world, maker.admin)
    let events = maker.admin.merging(["Accept": "text/event-stream"]) { $1 }
    for (target, token) in [(url, events), (url, maker.bearer("ann").merging(events) { given, _ in given })] {
      let here = try maker.client.send("HEAD", target, token)
      let there = try other.send("HEAD", target, token)
      #expect(there.status == here.status)
      for name in ["Content-Type", "Content-Length", "Transfer-Encoding", "Cache-Control", "Connection", "Vary"] {
        #expect(there[name] == here[name], "\(name): \(there.headers)")
      }
    }
    #expect(try other.send("HEAD", url, events)["Content-Length"] == nil)
    #expect(stream.head.status == 200)
  }

  @Test("The pages of a fetch are the same bytes at another node, for whom fetched them")
  func pages() throws {
    let world = try World()
    let (maker, other, admin) = (world.maker, world.other.client, world.maker.admin)
    for target in ["/v1/objects?limit=2", "/v1/objects/Person?sort=lastName&limit=1"] {
      var next = try #require(maker.client.send("GET", target, admin).json["next"].text)
      var pages = 1
      while true {
        let here = try maker.client.send("GET", "\(target)&page=\(next)", admin)
        let there = try other.send("GET", "\(target)&page=\(next)", admin)
        #expect(there.status == 200 && there.body == here.body && there["ETag"] == here["ETag"])
        #expect(there["Keyway-Cursor"] == here["Keyway-Cursor"])
        pages += 1
        let stranger = try other.send("GET", "\(target)&page=\(next)", maker.bearer("ann", roles: ["keyway-admin"]))
        #expect(stranger.status == 410 && stranger.problem == "page-expired")
        guard let following = there.json["next"].text else { break }
        next = following
      }
      #expect(pages > 2)
      #expect(try other.send("GET", "\(target)&filter=true&page=\(next)", admin).problem == "malformed-query")
    }
  }

  @Test("A stream that was cut resumes at another node, which holds events back until it has come as far itself")
  func resuming() throws {
    let world = try World()
    let (maker, admin) = (world.maker, world.maker.admin)
    let (stream, url) = try open(world, admin)
    _ = try stream.next()
    let cursor = try #require(stream.lastID)
    stream.socket.close()
    #expect(Deadline().awaits { (try? maker.client.send("GET", url, admin))?.status == 404 })
    try maker.client.must("PUT", "/v1/objects/Account/1/balance", admin, body: "101")
    try world.advance()
    let again = try world.other.client.stream(url, admin.merging(["Last-Event-ID": cursor]) { $1 })
    #expect(again.head["Content-Type"] == "text/event-stream; charset=utf-8")
    #expect(try again.next().json["url"].text == url)
    #expect(try again.next().changes.map { $0["new"].whole } == [101])
    let metrics = try world.other.client.send("GET", "/metrics", admin).text
    #expect(metrics.contains("keyway_nodes_streams 1"))
    // Now the maker is ahead: this node shows the revisions that its client has received.
    for value in 1...30 {
      try maker.client.must("PUT", "/v1/objects/Account/1/balance", admin, body: "\(1_000 + value)")
    }
    for value in 1...30 {
      try world.advance()
      let event = try again.next()
      #expect(event.changes.map { $0["new"].whole } == [1_000 + value])
      let revision = try #require(event.id?.split(separator: "-").last.flatMap { Int($0) })
      #expect(try world.other.revision(admin) >= revision)
    }
    // A connection lost on this node is lost on the maker too.
    again.socket.close()
    #expect(Deadline().awaits { (try? maker.client.send("GET", url, admin))?.status == 404 })
    #expect(
      Deadline().awaits {
        (try? world.other.client.send("GET", "/metrics", admin))?.text.contains("keyway_nodes_streams 0") == true
      })
    let back = try maker.client.stream(url, admin)
    #expect(try back.next().name == "open")
  }

  @Test("A stream of which nothing was missed resumes at another node, and one that is taken over goes on there")
  func quiet() throws {
    let world = try World()
    let (maker, admin) = (world.maker, world.maker.admin)
    let (stream, url) = try open(world, admin)
    _ = try stream.next()
    let cursor = try #require(stream.lastID)
    var random = SplitMix64(seed: seed)
    for (headers, target) in [(["Last-Event-ID": cursor], url), ([:], "\(url)?since=\(cursor)")] {
      // The former connection is taken over.
      let again = try world.other.client.stream(target, admin.merging(headers) { $1 })
      #expect(try again.next().name == "open")
      let value = Int.random(in: 2_000...9_000, using: &random)
      try maker.client.must("PUT", "/v1/objects/Account/1/balance", admin, body: "\(value)")
      try world.advance()
      #expect(try again.events { $0.changes.last?["new"].whole == value }.allSatisfy { $0.name != "reset" })
    }
    // A cursor from the future, as far as both nodes know, cannot be resumed from.
    let future = "\(world.other.epoch)-1000000"
    let ahead = try world.other.client.stream(url, admin.merging(["Last-Event-ID": future]) { $1 })
    #expect(try ahead.next().name == "open")
    #expect(try ahead.next().name == "reset")
  }

  @Test("HEAD of another node's stream or page names the length that the content of GET has")
  func lengths() throws {
    let world = try World()
    let admin = world.maker.admin
    let (stream, url) = try open(world, admin)
    let page = try #require(world.maker.client.send("GET", "/v1/objects?limit=2", admin).json["next"].text)
    for target in [url, "\(url)/cells", "\(url)/cells/none", "/v1/objects?limit=2&page=\(page)"] {
      let (get, head) = (
        try world.maker.client.send("GET", target, admin), try world.other.client.send("HEAD", target, admin)
      )
      #expect(head.status == get.status && head["Content-Length"] == get["Content-Length"], "\(target)")
      #expect(head["Content-Length"] != "0" && head.body.isEmpty, "\(target)")
    }
    withExtendedLifetime(stream) {}
  }

  @Test("Of a node that is gone or unknown, streams are 404 and pages 410; what was passed on once is not passed on")
  func gone() throws {
    let world = try World()
    let (maker, other, admin) = (world.maker, world.other.client, world.maker.admin)
    let (stream, url) = try open(world, admin)
    let page = try #require(maker.client.send("GET", "/v1/objects?limit=2", admin).json["next"].text)
    let targets = [("/v1/objects?limit=2&page=\(page)", "page-expired"), (url, "unknown-stream")]
    for (target, problem) in targets {
      #expect(try other.send("GET", target, admin).status == 200)
      let forwarded = admin.merging(["Keyway-Forwarded": "x"]) { $1 }
      #expect(try other.send("GET", target, forwarded).problem == problem)
      #expect(try maker.client.send("GET", target, forwarded).status == 200)
    }
    let unknown = "/v1/streams/000000" + url.dropFirst("/v1/streams/".count + 6)
    #expect(try other.send("GET", unknown, admin).problem == "unknown-stream")
    #expect(try other.send("GET", "/v1/objects?limit=2&page=000000abc.1", admin).problem == "page-expired")
    maker.server.server.drain()
    _ = stream
    for (target, problem) in targets { #expect(try other.send("GET", target, admin).problem == problem) }
    let streaming = admin.merging(["Accept": "text/event-stream"]) { $1 }
    #expect(try other.send("GET", url, streaming).problem == "unknown-stream")
  }

  @Test("No more streams of other nodes are sent on than nodes.streams")
  func bound() throws {
    let world = try World(streams: 1)
    let admin = world.maker.admin
    let urls = try (0..<2).map { _ in
      let (stream, url) = try open(world, admin)
      stream.socket.close()
      return url
    }
    let first = try world.other.client.stream(urls[0], admin)
    #expect(try first.next().name == "open")
    let second = try world.other.client.send("GET", urls[1], admin.merging(["Accept": "text/event-stream"]) { $1 })
    #expect(second.status == 503 && second.problem == "overloaded" && second["Retry-After"] != nil)
  }

  @Test("A client that takes all streams it can get leaves a place to others, and may take what they give back")
  func shares() throws {
    let world = try World(streams: 8, streamsPerClient: 7)
    let maker = world.maker
    func cut(_ token: [String: String]) throws -> String {
      let (stream, url) = try open(world, token)
      stream.socket.close()
      return url
    }
    func resume(_ url: String, _ token: [String: String]) throws -> WireStream {
      let stream = try world.other.client.stream(url, token)
      #expect(try stream.next().name == "open")
      return stream
    }
    func refusal(_ url: String, _ token: [String: String]) throws -> WireResponse {
      try world.other.client.send("GET", url, token.merging(["Accept": "text/event-stream"]) { $1 })
    }
    func awaitCount(_ count: Int) -> Bool {
      Deadline().awaits {
        let metrics = try? world.other.client.send("GET", "/metrics", maker.admin)
        return metrics?.text.contains("keyway_nodes_streams \(count)\n") == true
      }
    }
    var greedy = try (0..<7).map { _ in try resume(cut(maker.admin), maker.admin) }
    let more = try cut(maker.admin)
    let refused = try refusal(more, maker.admin)
    #expect(refused.status == 503 && refused.problem == "overloaded" && refused["Retry-After"] != nil)
    #expect(refused.text.contains("nodes.streamsPerClient"))
    let ann = maker.bearer("ann", roles: ["keyway-admin"])
    let other = try resume(cut(ann), ann)
    greedy.removeLast().socket.close()
    #expect(awaitCount(7))
    // The others leave less than before, so the free place is reserved for a newcomer.
    #expect(try refusal(more, maker.admin).problem == "overloaded")
    let bob = maker.bearer("bob", roles: ["keyway-admin"])
    let newcomer = try resume(cut(bob), bob)
    other.socket.close()
    newcomer.socket.close()
    #expect(awaitCount(6))
    #expect(try resume(more, maker.admin).head.status == 200)
    withExtendedLifetime(greedy) {}
  }
}

extension TestServer {
  fileprivate func revision(_ headers: [String: String]) throws -> Int {
    try client.send("GET", "/v1/status", headers).json["revision"].whole ?? -1
  }
}
