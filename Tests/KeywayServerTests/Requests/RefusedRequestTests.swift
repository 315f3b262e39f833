import HTTPServer
import KeyValueModel
import KeywayServer
import TestKit
import Testing

/// Requests that are refused before they reach a route: their responses still have the request's id and the CORS
/// fields.
@Suite("Refused requests") struct RefusedRequestTests {
  private static let listed = "https://app.example.org"
  private static let fields = "Host: localhost\r\nX-Request-Id: mine\r\nOrigin: \(listed)\r\n"

  /// Requests whose mistake is before, among or after those fields, in their head or their body.
  private static let requests: [(text: String, status: Int)] = [
    ("GET /%ZZ# HTTP/1.1\r\n\(fields)\r\n", 400), ("GET / HTTP/1.1\r\nA : b\r\n\(fields)\r\n", 400),
    ("GET / HTTP/1.1\r\n\(fields)Content-Length: x\r\n\r\n", 400),
    ("PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\(fields)\r\n", 400),
    ("PUT / HTTP/1.1\r\n\(fields)Content-Length: 999999999999999999999\r\n\r\n", 413),
    ("PUT / HTTP/1.1\r\n\(fields)Content-Length: 301\r\n\r\n\(String(repeating: "x", count: 301))", 413),
    ("GET /\(String(repeating: "a", count: 20_000)) HTTP/1.1\r\n\(fields)\r\n", 414),
    ("PUT / HTTP/1.1\r\n\(fields)Content-Encoding: gzip\r\n\r\n", 415),
    ("GET / HTTP/1.1\r\nHost: evil.example\r\nX-Request-Id: mine\r\nOrigin: \(listed)\r\n\r\n", 421),
    ("GET / HTTP/1.1\r\n\(fields)X: \(String(repeating: "a", count: 20_000))\r\n\r\n", 431),
    ("GET / HTTP/1.1\r\nX: \(String(repeating: "a", count: 20_000))\r\n\(fields)\r\n", 431),
    ("PUT / HTTP/1.1\r\n\(fields)Transfer-Encoding: gzip\r\n\r\n", 501),
    ("GET / HTTP/2.0\r\n\(fields)\r\n", 505),
    ("PUT / HTTP/1.1\r\n\(fields)Transfer-Encoding: chunked\r\n\r\nx\r\n", 400),
  ]

  @Test("A refusal has the id of its request, and may be read by pages of listed origins", arguments: requests)
  func marks(_ text: String, _ status: Int) throws {
    let server = try TestServer {
      $0.access.origins = [Self.listed]
      $0.server.bodyBytes = 300
    }
    let answer = try #require(try server.client.raw(Array(text.utf8)))
    #expect(answer.status == status)
    #expect(answer["X-Request-Id"] == "mine" && answer.json["requestId"].text == "mine", "\(answer.text)")
    #expect(answer["Access-Control-Allow-Origin"] == Self.listed && answer["Vary"] == "Origin")
    #expect(answer["Access-Control-Allow-Credentials"] == "true")
    let others = text.replacing(Self.listed, with: "https://evil.example")
    let other = try #require(try server.client.raw(Array(others.utf8)))
    #expect(other.status == status && other["Access-Control-Allow-Origin"] == nil && other["Vary"] == "Origin")
    let silent = try #require(try TestServer { $0.server.bodyBytes = 300 }.client.raw(Array(text.utf8)))
    #expect(silent.status == status && silent["Access-Control-Allow-Origin"] == nil && silent["Vary"] == nil)
  }

  @Test("A request that is refused before its fields have come has a made id, at once")
  func early() throws {
    let server = try TestServer()
    let answer = try #require(try server.client.raw(Array("GET / HTTP/3.0\r\nX-Request-Id: mi".utf8)))
    #expect(answer.status == 505 && answer["X-Request-Id"]?.isEmpty == false && answer["X-Request-Id"] != "mi")
    #expect(answer.json["requestId"].text == answer["X-Request-Id"])
  }
}
