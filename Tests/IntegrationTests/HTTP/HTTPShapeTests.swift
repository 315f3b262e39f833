import Glibc
import TestKit
import Testing

/// A server's responses to valid and malformed requests, on the wire. `KEYWAY_TEST_TABLE=1` prints a table of them.
@Suite("HTTP shapes")
struct HTTPShapeTests {
  /// The end of a connection.
  private enum End: String {
    case open, closed, reset
  }

  /// A request that must not be read: it follows malformed ones.
  private static let smuggled =
    "PUT /v1/objects/Account/1/balance HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    + "Content-Length: 3\r\n\r\n666"

  /// Sends a text, and returns everything that the server sends until it closes.
  private func answers(
    to text: String, pieces: Int? = nil, on server: ServerProcess
  ) throws -> (responses: [WireResponse], end: End) {
    let socket = try WireSocket(port: server.port)
    sendAtOnce(socket.descriptor)
    let bytes = Array(text.utf8)
    // The server may close before it has received everything.
    for start in stride(from: 0, to: bytes.count, by: pieces ?? bytes.count) {
      try? socket.send(Array(bytes[start..<min(bytes.count, start + (pieces ?? bytes.count))]))
    }
    var received: [UInt8] = []
    var end = End.closed
    do {
      while case let more = try socket.receive(before: Deadline()), !more.isEmpty { received += more }
    } catch {
      end = error.reason == .timedOut ? .open : .reset
    }
    return (try Self.responses(received), end)
  }

  /// Disables Nagle's algorithm, so that each piece is a segment of its own.
  private func sendAtOnce(_ descriptor: Int32) {
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Parses bytes into responses, each with a counted body.
  private static func responses(_ bytes: [UInt8]) throws -> [WireResponse] {
    var rest = bytes[...]
    var responses: [WireResponse] = []
    while !rest.isEmpty {
      let end = try #require(rest.indices.first { rest[$0...].starts(with: "\r\n\r\n".utf8) })
      var response = try #require(WireResponse(head: rest[..<end]))
      let count = try #require(response["Content-Length"].flatMap { Int($0) } ?? (response.status == 204 ? 0 : nil))
      try #require(rest.count >= end + 4 - rest.startIndex + count)
      response.body = Array(rest[(end + 4)..<(end + 4 + count)])
      rest = rest[(end + 4 + count)...]
      responses.append(response)
    }
    return responses
  }

  @Test("Malformed requests get one whole response, and then the connection is closed")
  func refused() throws {
    let server = try ServerProcess()
    let revision = try server.revision
    var table = ["| shape | status | answers | connection |", "|---|---|---|---|"]
    for shape in HTTPShape.refused {
      let (responses, end) = try answers(to: shape.text + Self.smuggled, on: server)
      table.append("| \(shape.name) | \(shape.status) | \(responses.count) | \(end) |")
      #expect(responses.count == 1 && end == .closed, "\(shape.name): \(responses.count), \(end)")
      guard let response = responses.first else { continue }
      #expect(response.status == shape.status && response.problem == shape.code, "\(shape.name): \(response.text)")
      #expect(response["Connection"] == "close" && response["Date"] != nil, "\(shape.name)")
    }
    #expect(try server.revision == revision)
    for shape in HTTPShape.taken { table.append("| \(shape.name) | \(shape.status) | 1 | open |") }
    if getenv("KEYWAY_TEST_TABLE") != nil { print(table.joined(separator: "\n")) }
  }

  @Test("Malformed requests are also refused byte by byte, and after a valid request")
  func refusedInPieces() throws {
    let server = try ServerProcess()
    let right = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for shape in HTTPShape.refused where shape.text.utf8.count < 400 {
      let (responses, end) = try answers(to: right + shape.text + Self.smuggled, on: server)
      #expect(responses.map(\.status) == [200, shape.status] && end == .closed, "\(shape.name)")
    }
    for shape in HTTPShape.chunks + HTTPShape.fields.prefix(12) {
      let (responses, end) = try answers(to: shape.text, pieces: 1, on: server)
      #expect(responses.map(\.status) == [shape.status] && end == .closed, "\(shape.name)")
    }
    #expect(try server.revision == 1)
  }

  @Test("Valid requests are accepted, whole or byte by byte, and the connection stays open")
  func taken() throws {
    let server = try ServerProcess()
    let last = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    for shape in HTTPShape.taken {
      for pieces in [nil, 1] {
        let (responses, end) = try answers(to: shape.text + last, pieces: pieces, on: server)
        #expect(responses.map(\.status) == [shape.status, 200] && end == .closed, "\(shape.name)")
      }
    }
    #expect(try server.client.json("/v1/objects/Account/1/balance").whole == 7)
  }

  @Test("An absolute target names this server, and Host the same name and port")
  func authorities() throws {
    let server = try ServerProcess()
    for (target, host, status) in [
      ("http://evil.example/healthz", "127.0.0.1", 421), ("https://evil.example", "127.0.0.1", 421),
      ("http://127.0.0.1:\(server.port)/healthz", "evil.example", 421), ("http://localhost?a", "evil.example", 421),
      ("http://evil.example/healthz", "evil.example", 421), ("http://127.0.0.1/healthz", "localhost", 421),
      ("http://127.0.0.1:1/healthz", "127.0.0.1:\(server.port)", 421), ("https://localhost?a", "localhost:80", 421),
      ("http://127.0.0.1:\(server.port)/healthz", "127.0.0.1:\(server.port)", 200),
      ("http://localhost?a", "LOCALHOST:80", 200), ("HTTPS://localhost:443", "localhost", 200),
      ("/healthz?http://127.0.0.1/", "evil.example", 421),
    ] {
      let response = try server.client.raw(Array("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
      #expect(response?.status == status, "\(target)")
    }
  }

  @Test("Requests that were sent at once are answered in order, however long the row is")
  func rows() throws {
    let server = try ServerProcess()
    let name = String(repeating: "x", count: 333)
    let row = (0..<400).map { "GET /\(name)\($0) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" }.joined()
    let last = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    let (responses, end) = try answers(to: row + last, on: server)
    #expect(responses.map(\.status) == Array(repeating: 404, count: 400) + [200] && end == .closed)
  }
}
