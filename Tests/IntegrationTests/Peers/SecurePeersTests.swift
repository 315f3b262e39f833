import Foundation
import KeyValueModel
import TestKit
import Testing

/// Peers that reach one another through proxies that terminate TLS.
@Suite("Peers behind TLS", .timeLimit(.minutes(60))) struct SecurePeersTests {
  private static let balance = "/v1/objects/Account/1/balance"
  private static let cells = #"{"cells":{"one":{"object":"Account/1","keyPaths":["balance"],"options":["old","new"]}}}"#

  /// Two peers, each behind a proxy whose certificate a test's authority has signed. The first one appends; the second
  /// one reaches the database through a proxy that can be cut.
  private struct Pair {
    let certificates: LoopbackCertificates
    let group: PeerGroup
    let way: FaultyProxy
    let proxies: [FrontProxy]

    /// Starts the peers. `authority` is the file of the certificates that the second peer trusts; by default those of
    /// the proxies.
    init(trusting authority: String? = nil) throws {
      let certificates = try LoopbackCertificates()
      self.certificates = certificates
      group = try PeerGroup(0, settings: ["nodes.caFile": certificates.authority, "nodes.waitSeconds": "1"])
      way = try FaultyProxy(to: group.postgres.port)
      let ports = try (0..<2).map { _ in try NodePorts.take() }
      proxies = try ports.map {
        try FrontProxy(.nginx, upstream: .port($0), name: "localhost", certificates: certificates)
      }
      for (index, proxy) in proxies.enumerated() {
        try proxy.start()
        var settings = ["port": "\(ports[index])", "nodes.url": "https://localhost:\(proxy.port)"]
        if index == 1, let authority { settings["nodes.caFile"] = authority }
        try group.add(settings, by: index == 1 ? way.port : nil)
      }
      let written = try group[0].must("PUT", SecurePeersTests.balance, body: "1")
      let read = try group.get(SecurePeersTests.balance, from: 1, since: written["Keyway-Cursor"])
      let pen = try group.peers[1].status["pen"].text
      guard read.text == "1\n", pen == "https://localhost:\(proxies[0].port)" else {
        throw LoopbackError("the first peer does not append: \(pen ?? "none")")
      }
    }

    /// Opens a stream with a cell at a peer, and returns it with its address.
    func open(at index: Int) throws -> (stream: WireStream, url: String) {
      let stream = try group[index].stream(
        "/v1/streams", ["Content-Type": "application/json"], method: "POST", body: SecurePeersTests.cells)
      return (stream, try #require(try stream.next().json["url"].text))
    }
  }

  @Test("A peer forwards its writes to the one that appends over https, and has what they did without the database")
  func writes() throws {
    let pair = try Pair()
    let group = pair.group
    pair.way.refuse()
    for value in 2..<20 {
      #expect(try group[1].must("PUT", Self.balance, body: "\(value)")["Keyway-Cursor"] != nil)
      #expect(try group[1].send("GET", Self.balance).text == "\(value)\n")
    }
    try group[0].must("POST", "/v1/objects/Note", body: #"{"text":"another's"}"#)
    let last = try group[1].must("PUT", Self.balance, body: "20")["Keyway-Cursor"]
    let journals = try (0..<2).map { try group.journal(of: $0, since: last) }
    #expect(journals[0] == journals[1] && journals[0].contains { $0.contains("another's") })
    #expect(try group.peers[1].status["pen"].text == "https://localhost:\(pair.proxies[0].port)")
    // The requests do go through the proxy.
    try pair.proxies[0].stop()
    let refused = try group[1].send("PUT", Self.balance, body: "21")
    #expect(refused.status == 503, "\(refused.text)")
    try pair.proxies[0].start()
    try pair.way.accept()
    #expect(Deadline().awaits { (try? group[1].send("PUT", Self.balance, body: "22"))?.status == 200 })
  }

  @Test("Requests for streams and pages of a peer are forwarded to it over https, in both directions")
  func names() throws {
    let pair = try Pair()
    let group = pair.group
    for (maker, other) in [(0, 1), (1, 0)] {
      let (made, url) = try pair.open(at: maker)
      #expect(Deadline().awaits { (try? group[other].send("GET", url))?.status == 200 })
      try group[other].must("PUT", "\(url)/cells/two", body: #"{"object":"Account/1","keyPaths":["turnover"]}"#)
      #expect(try group[maker].send("GET", "\(url)/cells/two").status == 200)
      let page = try #require(group[maker].json("/v1/objects?limit=2")["next"].text)
      #expect(try group[other].send("GET", "/v1/objects?limit=2&page=\(page)").status == 200)
      let cursor = try #require(group[maker].send("GET", url)["Keyway-Cursor"])
      made.socket.close()
      let passed = try group[other].stream(url, ["Last-Event-ID": cursor])
      #expect(try passed.next().name == "open")
      for value in 100..<110 {
        let index = value % 2 == 0 ? maker : other
        let id = try #require(group[index].must("PUT", Self.balance, body: "\(maker + 1)\(value)")["Keyway-Cursor"])
        #expect(try passed.events { $0.id == id }.last?.text.contains("\"new\":") == true)
      }
      #expect(try group.peers[maker].status["streams"].whole == 1)
      passed.socket.close()
      #expect(try Deadline().awaits { try group.peers[maker].status["streams"].whole == 0 })
    }
  }

  @Test("A peer that does not trust the certificates of another sends it neither writes nor requests")
  func untrusted() throws {
    let others = try LoopbackCertificates()
    let pair = try Pair(trusting: others.authority)
    let group = pair.group
    let (_, url) = try pair.open(at: 0)
    // It knows the other peer, from the database, when it takes over.
    try group[1].must("PUT", Self.balance, body: "2")
    #expect(try group.peers[1].status["pen"].text == "https://localhost:\(pair.proxies[1].port)")
    let unknown = try group[1].send("GET", "\(url)/cells")
    #expect(unknown.status == 404 && unknown.problem == "unknown-stream", "\(unknown.text)")
    // The first one trusts the second, and forwards.
    #expect(try group[0].must("PUT", Self.balance, body: "3")["Keyway-Cursor"] != nil)
    let cursor = try group.peers[0].cursor
    #expect(try group.get(Self.balance, from: 1, since: cursor).text == "3\n")
  }
}
