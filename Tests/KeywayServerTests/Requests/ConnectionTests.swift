import HTTPServer
import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Connections and limits")
struct ConnectionTests {
  private func head(_ line: String, _ fields: String...) -> String {
    ([line, "Host: localhost"] + fields).joined(separator: "\r\n") + "\r\n\r\n"
  }

  @Test("Requests on one connection are answered in their order, also where they were sent at once")
  func pipelining() throws {
    let server = try TestServer()
    let client = server.client
    let socket = try WireSocket(port: client.port)
    let put = head(
      "PUT /v1/objects/Account/1/visits HTTP/1.1", "Content-Type: application/json", "Content-Length: 1")
    let get = head("GET /v1/objects/Account/1/visits HTTP/1.1")
    try socket.send(put + "1" + get + put + "2" + get + head("BREW / HTTP/1.1") + get)
    let reader = WireReader(socket)
    let answers = try (0..<6).map { _ in try reader.response(hasBody: true, before: Deadline()) }
    #expect(answers.map(\.status) == [200, 200, 200, 200, 405, 200])
    #expect([0, 1, 2, 3, 5].map { answers[$0].jsonText } == ["1", "1", "2", "2", "2"])
  }

  @Test("A client that waits for 100 Continue gets it, or its refusal")
  func expectation() throws {
    let server = try TestServer { $0.server.bodyBytes = 1024 }
    let client = server.client
    for (count, status) in [(3, 200), (5000, 413)] {
      let socket = try WireSocket(port: client.port)
      try socket.send(
        head(
          "PUT /v1/objects/Account/1/visits HTTP/1.1", "Content-Type: application/json", "Content-Length: \(count)",
          "Expect: 100-continue"))
      let reader = WireReader(socket)
      var answer = try reader.head(before: Deadline())
      if answer.status == 100 {
        try socket.send(String(repeating: "1", count: count))
        answer = try reader.head(before: Deadline())
      }
      #expect(answer.status == status)
    }
  }

  @Test("A body in chunks is a body")
  func chunkedBody() throws {
    let server = try TestServer()
    let request = head(
      "PUT /v1/objects/Account/1/visits HTTP/1.1", "Content-Type: application/json", "Transfer-Encoding: chunked")
    let answer = try server.client.raw(Array((request + "1\r\n1\r\n2\r\n23\r\n0\r\n\r\n").utf8))
    #expect(answer?.jsonText == "123")
  }

  @Test("A client of HTTP/1.0 gets its stream without chunks")
  func oldClient() throws {
    let server = try TestServer()
    let client = server.client
    let socket = try WireSocket(port: client.port)
    try socket.send(head("GET /v1/objects/Account/1/balance HTTP/1.0", "Accept: text/event-stream"))
    let reader = WireReader(socket)
    #expect(try reader.head(before: Deadline())["Transfer-Encoding"] == nil)
    #expect(try reader.line(before: Deadline()).hasPrefix("retry: "))
    #expect(try reader.line(before: Deadline()).hasPrefix("id: "))
  }

  @Test("One address takes its share of the streams and is told 429; another is served")
  func shareOfStreams() throws {
    let server = try TestServer {
      $0.server.streams = 4
      $0.server.streamsPerAddress = 2
    }
    let streams = try (0..<2).map { _ in try server.subscribed("Account/1/balance") }
    for target in ["/v1/streams", "/v1/objects/Account/1", "/v1/objects/Account", "/v1/journal"] {
      let refused = try server.client.send("GET", target, ["Accept": "text/event-stream"])
      #expect(refused.status == 429 && refused.problem == "too-many-streams" && refused["Retry-After"] != nil)
    }
    let other = try server.client(from: "127.0.0.2").stream("/v1/objects/Account/1/balance")
    #expect(try other.next().name == "change")
    streams[0].socket.close()
    #expect(Deadline().awaits { (try? server.subscribed("Account/1")) != nil })
  }

  @Test("One stream too many is 503 with Retry-After; when another has ended there is room")
  func tooManyStreams() throws {
    let server = try TestServer { $0.server.streams = 2 }
    let streams = try (0..<2).map { _ in try server.subscribed("Account/1/balance") }
    for target in ["/v1/streams", "/v1/objects/Account/1"] {
      let refused = try server.client.send("GET", target, ["Accept": "text/event-stream"])
      #expect(refused.status == 503)
      #expect(refused.problem == "too-many-streams")
      #expect(refused["Retry-After"] != nil)
    }
    streams[0].socket.close()
    let hasRoom = Deadline().awaits { (try? server.subscribed("Account/1")) != nil }
    #expect(hasRoom)
    try server.set("Account/1/balance", "1")
    #expect(try streams[1].next().name == "change")
  }

  @Test("A stream that has lived its time is told bye with lifetime, and comes back with its last id")
  func lifetime() throws {
    let server = try TestServer { $0.server.lifetimeSeconds = 1 }
    let stream = try server.client.stream("/v1/objects/Account/1/balance")
    let events = try stream.rest().filter { $0.name != "heartbeat" }
    #expect(events.map(\.name) == ["change", "bye"])
    #expect(events.last?.text == "event: bye\ndata: {\"reason\":\"lifetime\"}")
    #expect(stream.isComplete)
    let cursor = try #require(stream.lastID)
    try server.set("Account/1/balance", "1")
    let back = try server.client.stream("/v1/objects/Account/1/balance", ["Last-Event-ID": cursor])
    #expect(try back.next().changes.first?["new"].double == 1)
  }

  @Test("OPTIONS * is answered; a Host that is none of ours is 421 on every route; added names are ours")
  func hosts() throws {
    let server = try TestServer { $0.names = ["Keyway.example"] }
    #expect(try server.client.send("OPTIONS", "*").status == 204)
    for host in ["evil.example", "127.0.0.1.evil", "localhost:80a", "", "[::2]"] {
      for target in ["/healthz", "/v1/status", "/v1/objects/Account", "/nowhere"] {
        #expect(try server.client.send("GET", target, ["Host": host]).status == 421, "\(host) \(target)")
      }
    }
    for host in ["localhost", "LOCALHOST:1", "[::1]:8080", "127.0.0.1", "keyway.example:443"] {
      #expect(try server.client.send("GET", "/healthz", ["Host": host]).status == 200, "\(host)")
    }
  }

  @Test("Names below a suffix are ours, the address itself is, and a 421 says what the setting must have")
  func names() throws {
    let server = try TestServer(objects: []) {
      $0.host = "0.0.0.0"
      $0.access.open = true
      $0.names = ["*.Example.org", "2001:db8::1", "192.0.2.7"]
    }
    let away = server.client(to: "127.0.0.3")
    let good = [
      "a.example.org", "a.b.EXAMPLE.org:80", "[2001:db8::1]:80", "192.0.2.7", "127.0.0.3", "127.0.0.3:8080",
      "[::ffff:127.0.0.3]",
    ]
    for host in good { #expect(try away.send("GET", "/healthz", ["Host": host]).status == 200, "\(host)") }
    let bad: [(host: String, name: String?)] = [
      ("example.org", "example.org"), ("Evil.example:8443", "evil.example"), ("127.0.0.4", "127.0.0.4"),
      ("[2001:db8::2]:80", "[2001:db8::2]"), ("aexample.org", "aexample.org"), (".example.org", nil),
      ("127.0.0.3:x", nil), ("*.example.net", nil),
    ]
    for (host, name) in bad {
      let response = try away.send("GET", "/healthz", ["Host": host])
      #expect(response.status == 421 && response.problem == "misdirected-request", "\(host)")
      let detail = response.json["detail"].text ?? ""
      #expect(detail.contains("names must have") == (name != nil), "\(host): \(detail)")
      if let name {
        #expect(detail.hasSuffix("names must have '\(name)'"), "\(detail)")
        let named = try TestServer(objects: []) { $0.names = [name] }
        #expect(try named.client.send("GET", "/healthz", ["Host": host]).status == 200, "\(host)")
      }
    }
  }

  @Test("Accept chooses the form: what is named wins over a range, JSON wins a tie, and q=0 forbids")
  func negotiation() throws {
    let server = try TestServer()
    let forms: [(accept: String, type: String)] = [
      ("*/*", "application/json"), ("application/*", "application/json"), ("text/*", "text/event-stream"),
      ("text/event-stream, */*", "text/event-stream"), ("text/event-stream, application/json", "application/json"),
      ("text/event-stream;q=0.5, application/json;q=0.4", "text/event-stream"),
      ("text/html, application/xhtml+xml, */*;q=0.8", "application/json"),
      ("application/json;q=0, */*", "text/event-stream"), ("TEXT/Event-Stream", "text/event-stream"),
    ]
    for (accept, type) in forms {
      let head = try server.client.send("HEAD", "/v1/objects/Account/1/balance", ["Accept": accept])
      #expect(head.status == 200)
      #expect(head["Content-Type"]?.hasPrefix(type) == true, "\(accept)")
    }
  }

  @Test("Metrics name the route, never the path, and count what happened")
  func metrics() throws {
    let server = try TestServer()
    let stream = try server.subscribed("Account/1/balance")
    try server.set("Account/1/balance", "1")
    _ = try stream.next()
    _ = try server.client.send("GET", "/v1/objects/Account/404")
    let text = try server.client.must("GET", "/metrics").text
    #expect(text.contains("keyway_streams 1"))
    #expect(text.contains("keyway_commits_total \(try server.revision)"))
    #expect(text.contains(#"route="/v1/objects/{Entity}/{id}/{keyPath}""#))
    #expect(!text.contains("Account"))
  }
}
