import Foundation
import Glibc
import Support
import TestKit
import Testing

@testable import KeywayClient

@Suite("A stream that comes back", .timeLimit(.minutes(60)))
struct EventStreamConnectionTests {
  private static let head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n"

  private static func events(
    _ server: ScriptedServer, lastEventID: String = "", endsAfterGone: Bool = false
  ) async throws -> [ServerSentEvent] {
    let connection = EventStreamConnection(
      try Client(server: server.address), path: "/v1/objects/Account/1", lastEventID: lastEventID,
      endsAfterGone: endsAfterGone, policy: ReconnectionPolicy(baseMilliseconds: 1, maximumMilliseconds: 10))
    var events: [ServerSentEvent] = []
    for try await event in connection.events { events.append(event) }
    return events
  }

  private static func lastEventIDs(_ server: ScriptedServer) -> [String?] {
    server.requests.map { head in
      let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("last-event-id:") }
      return line.map { String($0.drop { $0 != ":" }.dropFirst(2)) }
    }
  }

  @Test("goes on behind the last event after bye, after a cut in the middle, and after 503, and ends with 204")
  func resumes() async throws {
    let server = try ScriptedServer([
      Self.head + "retry: 1\nid: k-1\nevent: change\ndata: a\n\nevent: bye\ndata: {}\n\n",
      Self.head + "id: k-2\ndata: b\n\nid: k-3\ndata: cut",
      "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
      Self.head + "id: k-3\ndata: c\n\n", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    ])
    let events = try await Self.events(server)
    #expect(events.map(\.data) == ["a", "{}", "b", "c"])
    #expect(Self.lastEventIDs(server) == [nil, "k-1", "k-2", "k-2", "k-3"])
  }

  @Test("a block without data moves the id, one with an empty id resets it, and one with NULL does neither")
  func idsWithoutData() async throws {
    let server = try ScriptedServer([
      Self.head + "retry: 1\nid: k-1\ndata: a\n\nid: k-2\n\n", Self.head + "data: b\n\nid: k\u{0}3\n\n",
      Self.head + "id: k-4\ndata: c\n\nid\n\n", Self.head + "id: k-5\n\nid: k-6",
      "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    ])
    #expect(try await Self.events(server).map(\.id) == ["k-1", "k-2", "k-4"])
    #expect(Self.lastEventIDs(server) == [nil, "k-2", "k-2", nil, "k-5"])
  }

  @Test("starts behind the cursor that it is given")
  func starts() async throws {
    let server = try ScriptedServer(["HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"])
    #expect(try await Self.events(server, lastEventID: "k-7").isEmpty)
    #expect(Self.lastEventIDs(server) == ["k-7"])
    #expect(server.requests.first?.lowercased().contains("accept: text/event-stream\r\n") == true)
  }

  @Test("ends after gone where the stream is of one object")
  func gone() async throws {
    let server = try ScriptedServer([Self.head + "event: change\ndata: a\n\nid: k-2\nevent: gone\ndata: {}\n\n"])
    #expect(try await Self.events(server, endsAfterGone: true).map(\.event) == ["change", "gone"])
  }

  @Test("throws the problem of a client error")
  func refused() async throws {
    let body = #"{"type":"/v1/problems/unknown-object","status":404,"detail":"no such object"}"#
    let server = try ScriptedServer([
      "HTTP/1.1 404 Not Found\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
    ])
    await #expect {
      try await Self.events(server)
    } throws: { error in
      "\(error)" == "404 unknown-object: no such object"
    }
  }

  @Test("sends no request with a header that would be left out, also for a single response")
  func headers() async throws {
    let client = try Client(server: "http://127.0.0.1:1")
    for value in ["k-1\n", "a\r\nb", "\u{7F}", "\0"] {
      await #expect(throws: ClientError.invalidHeader("If-Match")) {
        try await client.request("PUT", "/", body: [], headers: ["If-Match": value])
      }
    }
    let stream = EventStreamConnection(client, path: "/", lastEventID: "k-1\nx")
    await #expect(throws: ClientError.invalidHeader("Last-Event-ID")) { try await stream.next() }
  }

  @Test("refuses what is no event stream")
  func noStream() async throws {
    let server = try ScriptedServer([
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    ])
    let error = ClientError.notAnEventStream(path: "/v1/objects/Account/1", contentType: "application/json")
    await #expect(throws: error) { try await Self.events(server) }
  }

  @Test("ends when the task around it is cancelled, also between two attempts")
  func cancelled() async throws {
    let server = try ScriptedServer([Self.head + "data: a\n\n"])
    let client = try Client(server: server.address)
    let (started, signal) = AsyncStream<Void>.makeStream()
    let task = Task {
      let connection = EventStreamConnection(
        client, path: "/", policy: ReconnectionPolicy(baseMilliseconds: 3_600_000, maximumMilliseconds: 3_600_000),
        notify: { if case .reconnecting = $0 { signal.finish() } })
      var count = 0
      for try await _ in connection.events { count += 1 }
      return count
    }
    for await _ in started {}
    task.cancel()
    #expect(try await task.value == 1)
  }
}

/// A server for one test: each connection gets the next response, and is then closed.
final class ScriptedServer: Sendable {
  private let listener: LoopbackListener
  private let heads = Locked<[String]>([])

  /// The heads of the requests, one for each connection.
  var requests: [String] { heads.withLock { $0 } }

  /// The address for a client.
  var address: String { "http://127.0.0.1:\(listener.port)" }

  init(_ answers: [String]) throws {
    listener = try LoopbackListener()
    Thread { [self] in for answer in answers { serve(answer) } }.start()
  }

  private func serve(_ answer: String) {
    guard let connection = listener.accept() else { return }
    defer { close(connection) }
    var head: [UInt8] = []
    var byte: UInt8 = 0
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8), recv(connection, &byte, 1, 0) == 1 { head.append(byte) }
    heads.withLock { $0.append(String(decoding: head, as: UTF8.self)) }
    let bytes = Array(answer.utf8)
    send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    shutdown(connection, Int32(SHUT_WR))
    // Not closed before the client has read: a reset would discard the response.
    while recv(connection, &byte, 1, 0) == 1 {}
  }
}
