import KeyValueModel
import TestKit
import Testing

/// A stream with cells whose client loses its connection and returns to its URL, with all its events.
final class CuttableStream {
  private let server: TestServer
  private let headers: [String: String]
  /// The size of the receive buffer: small for a reader that makes the server wait, nil for the default.
  private let receiveBufferBytes: Int32?
  private var connection: WireStream?
  let url: String
  private(set) var cursor: String?
  /// The events, except `open` and heartbeats.
  private(set) var events: [WireEvent] = []

  /// Opens a stream. `receiveBufferBytes` is small for a reader that makes the server wait.
  init(
    _ server: TestServer, cells: String = "{}", _ headers: [String: String] = [:], receiveBufferBytes: Int32? = nil
  ) throws {
    self.server = server
    self.headers = headers
    self.receiveBufferBytes = receiveBufferBytes
    let connection = try server.client.stream(
      "/v1/streams", headers.merging(["Content-Type": "application/json"]) { $1 }, method: "POST",
      body: "{\"cells\":\(cells)}", receiveBufferBytes: receiveBufferBytes)
    self.connection = connection
    url = try #require(try connection.next().json["url"].text)
  }

  var isCut: Bool { connection == nil }

  /// Reads up to and including the first event for which `isLast` holds.
  @discardableResult
  func read(until isLast: (WireEvent) -> Bool) throws -> [WireEvent] {
    let connection = try #require(connection)
    let new = try connection.events(until: isLast)
    cursor = connection.lastID ?? cursor
    events += new
    return new
  }

  /// Reads the next event.
  func next() throws -> WireEvent { try #require(try read { _ in true }.last) }

  /// Loses the connection, with all unread events. Returns once the server has noticed.
  func cut(byReset: Bool = false) throws {
    let connection = try #require(connection)
    cursor = connection.lastID ?? cursor
    if byReset { connection.socket.reset() } else { connection.socket.close() }
    self.connection = nil
    #expect(Deadline().awaits { (try? status()) == 404 })
  }

  /// Returns the status of a request for the stream's description.
  func status() throws -> Int { try server.client.send("GET", url, headers).status }

  /// Reconnects, and returns the `open`.
  @discardableResult
  func resume(since: String? = nil) throws -> WireEvent {
    let cursor = since ?? cursor
    let connection = try server.client.stream(
      url, headers.merging(cursor.map { ["Last-Event-ID": $0] } ?? [:]) { $1 }, receiveBufferBytes: receiveBufferBytes)
    self.connection = connection
    return try connection.next()
  }

  /// Sends a request for its cells.
  @discardableResult
  func send(_ method: String, _ path: String, _ body: String? = nil) throws -> WireResponse {
    try server.client.send(method, url + path, headers, body: body)
  }
}
