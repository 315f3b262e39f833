import Foundation
import TestKit
import Testing

@Suite("Clients that vanish")
struct VanishedClientTests {
  @Test("A client that is killed, or whose connection is reset, is gone from the status with all that it observed")
  func vanishing() throws {
    let server = try ServerProcess()
    let target = "/v1/objects/Account/1/balance,owner.lastName"
    let curl = try ChildProcess.start(
      "/usr/bin/curl", ["-sSN", "-H", "Accept: text/event-stream", server.url + target])
    _ = try curl.lines(4)
    let streams = try (0..<3).map { _ in try server.client.stream(target) }
    let cells = try server.client.stream(
      "/v1/streams", ["Content-Type": "application/json"], method: "POST",
      body: #"{"cells":{"a":{"object":"Account/1"},"b":{"object":"Person/7","visible":false}}}"#)
    for stream in streams + [cells] { _ = try stream.next() }
    let status = try server.status
    #expect(status["streams"].whole == 5)
    #expect(status["cells"].whole == 2)
    #expect(status["observations"].whole == 11)
    curl.send(SIGKILL)
    for stream in streams + [cells] { stream.socket.reset() }
    #expect(try server.hasNoStreams())
    #expect(try server.status["cells"].whole == 0)
    #expect(try server.client.json("/v1/streams")["streams"].items.isEmpty)
  }

  @Test("300 subscribers come and go five times, and leave neither descriptors nor streams nor observations behind")
  func comingAndGoing() throws {
    let server = try ServerProcess()
    #expect(try server.hasNoStreams())
    var before = 0
    for round in 0..<5 {
      let streams = try (0..<300).map { index in
        try server.client.stream("/v1/objects/Account/\(index % 2 + 1)/balance,owner.lastName?context=\(index % 7)")
      }
      for stream in streams { _ = try stream.next() }
      #expect(try server.status["streams"].whole == 300)
      try server.set("Account/1/balance", "\(round)")
      for (index, stream) in streams.enumerated() {
        if index % 2 == 0 { #expect(try stream.next().changes[0]["new"].whole == round) }
        if index % 3 == 0 { stream.socket.reset() } else { stream.socket.close() }
      }
      #expect(try server.hasNoStreams())
      // The descriptors left after the first round are the server's own.
      if round == 0 {
        var smallest = Int.max
        _ = Deadline(seconds: 1).awaits {
          smallest = min(smallest, server.descriptorCount)
          return false
        }
        before = smallest
      } else {
        #expect(Deadline().awaits { server.descriptorCount <= before })
      }
    }
    #expect(try server.stop() == 0)
  }

  @Test("A client that sends a byte of its header now and then is cut off, and so is one that never ends its body")
  func slowRequests() throws {
    let server = try ServerProcess(settings: ["request.seconds": "1"])
    let head = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + String(repeating: "a", count: 200)
    let body =
      "PUT /v1/objects/Account/1/balance HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
      + "Content-Length: 500\r\n\r\n" + String(repeating: " ", count: 200)
    let before = try server.revision
    for text in [head, body] {
      let isCut = try drips(text, from: text.utf8.count - 190, to: server)
      #expect(isCut)
    }
    #expect(try server.revision == before)
    #expect(try server.client.send("GET", "/healthz").status == 200)
  }

  /// Sends bytes one by one, with a pause after each, until the server closes the connection.
  private func drips(_ text: String, from start: Int, to server: ServerProcess) throws -> Bool {
    let socket = try WireSocket(port: server.port)
    let bytes = Array(text.utf8)
    try socket.send(Array(bytes[..<start]))
    for byte in bytes[start...] {
      do {
        try socket.send([byte])
        let answer = try socket.receive(before: Deadline(seconds: 0.2))
        if answer.isEmpty { return true }
        // A server may answer 408 before it closes.
        #expect(String(decoding: answer, as: UTF8.self).hasPrefix("HTTP/1.1 408"))
        return true
      } catch {
        guard case .timedOut = error.reason else { return true }
      }
    }
    return false
  }
}
