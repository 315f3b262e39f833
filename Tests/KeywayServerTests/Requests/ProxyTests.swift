import HTTPServer
import KeyValueModel
import KeywayServer
import Support
import TestKit
import Testing

/// Clients behind a proxy.
@Suite("Behind a proxy") struct ProxyTests {
  private let streaming = ["Accept": "text/event-stream"]

  /// Returns true if a client has used up its share of streams. If it has not, the call waits, since the stream that it
  /// opens does not end.
  private func isFull(_ client: WireClient, for address: String) throws -> Bool {
    let response = try client.send("GET", "/v1/streams", streaming.merging(["X-Forwarded-For": address]) { $1 })
    return response.status == 429
  }

  @Test("Behind a trusted proxy each client has its share; from another address the header says nothing")
  func shares() throws {
    let server = try TestServer(objects: []) {
      $0.access.proxies = ["127.0.0.1"]
      $0.server.streamsPerAddress = 1
    }
    let one = try server.client.stream("/v1/streams", ["X-Forwarded-For": "198.51.100.1"])
    let two = try server.client.stream("/v1/streams", ["X-Forwarded-For": "203.0.113.9, 198.51.100.2, 127.0.0.1"])
    for address in ["198.51.100.1", "198.51.100.2"] { #expect(try isFull(server.client, for: address)) }
    let proxy = try server.client.stream("/v1/streams", ["X-Forwarded-For": "198.51.100.3, nonsense"])
    #expect(try isFull(server.client, for: ""))
    let away = server.client(from: "127.0.0.2")
    let liar = try away.stream("/v1/streams", ["X-Forwarded-For": "198.51.100.4"])
    #expect(try isFull(away, for: "198.51.100.5"))
    let honest = try server.client.stream("/v1/streams", ["X-Forwarded-For": "198.51.100.4"])
    withExtendedLifetime([one, two, proxy, liar, honest]) {}
  }

  @Test("A connection that a proxy uses for many clients is each request's own client's")
  func sharedConnection() throws {
    let server = try TestServer(objects: []) {
      $0.access.proxies = ["127.0.0.0/8"]
      $0.access.rates.requestsPerSecond = 1
    }
    // Sent at once on one connection: one request of each client, and then one without the header.
    let requests = (1...5).map {
      "GET /v1/entities HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 198.51.100.\($0)\r\n\r\n"
    }
    let last = "GET /v1/entities HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    let socket = try WireSocket(port: server.server.port)
    try socket.send(requests.joined() + last)
    let reader = WireReader(socket)
    for _ in 0..<6 { #expect(try reader.response(hasBody: true, before: Deadline()).status == 200) }
  }

  @Test("The cookie is Secure where a trusted proxy says https, and never by the word of another")
  func cookies() throws {
    let guarded = try GuardedServer(objects: []) { $0.access.proxies = ["127.0.0.1"] }
    func isSecure(_ client: WireClient, _ proto: String) throws -> Bool? {
      let headers = guarded.admin.merging(["X-Forwarded-Proto": proto]) { $1 }
      return try client.send("POST", "/v1/session", headers)["Set-Cookie"]?.contains("; Secure")
    }
    #expect(try isSecure(guarded.client, "https") == true)
    #expect(try isSecure(guarded.client, "HTTPS") == true)
    #expect(try isSecure(guarded.client, "http") == false)
    #expect(try isSecure(guarded.server.client(from: "127.0.0.2"), "https") == false)
  }

  @Test("On a socket of this machine, unix is the proxy")
  func socket() throws {
    let folder = try ScratchDirectory()
    for (proxies, isApart) in [(["unix"], true), (["127.0.0.1"], false)] {
      let path = folder.path + "/k.sock"
      let server = try TestServer(objects: []) {
        $0.host = "unix:\(path)"
        $0.access.proxies = proxies
        $0.server.streamsPerAddress = 1
      }
      let client = WireClient(path: path, keepingAlive: server)
      let open = try client.stream("/v1/streams", ["X-Forwarded-For": "198.51.100.1"])
      #expect(try isFull(client, for: "198.51.100.1"))
      let other = "198.51.100.2"
      if isApart {
        let another = try client.stream("/v1/streams", ["X-Forwarded-For": other])
        withExtendedLifetime(another) {}
      } else {
        #expect(try isFull(client, for: other))
      }
      withExtendedLifetime(open) {}
    }
  }

  @Test("An entry that is not a proxy is refused at the start")
  func mistakes() {
    let error = #expect(throws: HTTPServerError.self) { try TestServer(objects: []) { $0.access.proxies = ["proxy"] } }
    #expect(error.map { "\($0)" }?.contains("access.proxies: 'proxy' is not an address") == true)
  }
}
