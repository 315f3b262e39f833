import Foundation
import Glibc
import Support
import TestKit
import Testing

@testable import Outbound

@Suite("Requests to other servers") struct OutboundClientTests {
  private static let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
  private let client = OutboundClient(caFile: nil)

  private func send(
    _ method: String, _ server: ScriptedServer, limit: Int = 1_000, seconds: Double = 30
  ) throws(OutboundFault) -> OutboundResponse {
    try client.send(OutboundRequest(method, server.origin, "/x"), limit: limit, before: .now + .seconds(seconds))
  }

  private func fault(_ body: () throws(OutboundFault) -> Void) throws -> OutboundFault {
    try #require(#expect(throws: OutboundFault.self) { try body() })
  }

  @Test("Responses with a length, in chunks and without content are read whole, on one connection")
  func responses() throws {
    let server = try ScriptedServer([
      [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\nX-C:\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nX-D: e\r\n\r\n"
          + "3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nTrailer: x\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", Self.empty,
      ]
    ])
    let first = try send("PUT", server)
    #expect(first.status == 200 && first.body == Array("hello".utf8) && first["x-a"] == "b" && first["x-c"] == "")
    let second = try send("PUT", server)
    #expect(second.status == 201 && second.body == Array("abcd".utf8) && second["X-D"] == "e")
    #expect(second["Trailer"] == nil)
    #expect(try send("DELETE", server).status == 204)
    let head = try send("HEAD", server)
    #expect(head["Content-Length"] == "7" && head.body.isEmpty)
    #expect(try send("GET", server).status == 200)
    #expect(server.connections.withLock { $0 } == 1)
  }

  @Test("A request is sent as it stands: its target, its fields, its body, and nothing else")
  func requests() throws {
    let server = try ScriptedServer([[Self.empty, Self.empty]])
    var request = OutboundRequest("PATCH", server.origin, "/a/../b//c?x=%2F{}&y=é")
    request.fields = [("Content-Type", "text/x"), ("X-Empty", ""), ("x-twice", "1"), ("x-twice", "2")]
    request.body = Array("body".utf8)
    _ = try client.send(request, limit: 0, before: .now + Deadline.patience)
    _ = try client.send(OutboundRequest("POST", server.origin, "/"), limit: 0, before: .now + Deadline.patience)
    let requests = server.requests.withLock { $0 }
    #expect(
      requests.first == "PATCH /a/../b//c?x=%2F{}&y=é HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"
        + "Content-Type: text/x\r\nX-Empty:\r\nx-twice: 1\r\nx-twice: 2\r\nContent-Length: 4\r\n\r\nbody")
    #expect(requests.last == "POST / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nContent-Length: 0\r\n\r\n")
  }

  @Test(
    "A write that may have been received is not sent again; a read is",
    arguments: [nil, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "SIP/2.0 200 OK\r\n\r\n"])
  func once(answer: String?) throws {
    for method in ["POST", "PUT"] {
      // The first connection is kept; the second would receive a retry.
      let server = try ScriptedServer([[Self.empty, answer], [Self.empty, Self.empty]])
      _ = try send(method, server)
      let fault = try fault { () throws(OutboundFault) in _ = try send(method, server) }
      #expect(!fault.isUnsent && fault.kind == .interrupted, "\(fault)")
      #expect(server.requests.withLock { $0.count } == 2)
    }
    guard answer == nil else { return }
    let server = try ScriptedServer([[Self.empty, nil], [Self.empty]])
    _ = try send("GET", server)
    #expect(try send("GET", server).status == 200)
    #expect(server.requests.withLock { $0.count } == 3)
  }

  @Test("If nothing listens, a name has no address, or the scheme is wrong, nothing was sent")
  func unreachable() throws {
    let port = try LoopbackPort.free()
    for (origin, kind) in [
      ("http://127.0.0.1:\(port)", OutboundFault.Kind.unreachable), ("http://nowhere.invalid", .unreachable),
      ("https://127.0.0.1:\(port)", .unreachable), ("ftp://127.0.0.1", .invalid), ("file://", .invalid),
    ] {
      let fault = try fault { () throws(OutboundFault) in
        _ = try client.send(OutboundRequest("GET", origin, "/"), limit: 0, before: .now + Deadline.patience)
      }
      #expect(fault.isUnsent && fault.kind == kind, "\(origin): \(fault)")
    }
  }

  @Test("A line break or NUL in a head is not sent")
  func lineBreaks() throws {
    let server = try ScriptedServer([[Self.empty]])
    for text in ["\r\nX: y", "\nX: y", "\0"] {
      var request = OutboundRequest("GET", server.origin, "/")
      request.fields = [("A", "b" + text)]
      for request in [
        request, OutboundRequest("GET" + text, server.origin, "/"), OutboundRequest("GET", server.origin, "/" + text),
      ] {
        let fault = try fault { () throws(OutboundFault) in
          _ = try client.send(request, limit: 0, before: .now + Deadline.patience)
        }
        #expect(fault.isUnsent && fault.kind == .invalid)
      }
    }
    #expect(server.requests.withLock { $0.isEmpty })
  }

  @Test("A response that has more bytes than its limit, or a head that is too long, is a fault")
  func limits() throws {
    for answer in [
      "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + String(repeating: "x", count: 1_001),
      "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 1_001),
      "HTTP/1.1 200 OK\r\n" + String(repeating: "X: " + String(repeating: "x", count: 700) + "\r\n", count: 100)
        + "\r\n",
    ] {
      let server = try ScriptedServer([[answer, nil]])
      let fault = try fault { () throws(OutboundFault) in _ = try send("GET", server) }
      #expect(fault.kind == .oversized && !fault.isUnsent, "\(fault)")
    }
  }

  @Test("A server that does not answer in time, or stops in the middle, is a timeout, and its connection is closed")
  func silence() throws {
    for beginning in ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] {
      let isClosed = Locked(false)
      let server = try ScriptedServer { connection, _ in
        _ = connection.request()
        connection.send(beginning)
        _ = connection.request()
        isClosed.withLock { $0 = true }
      }
      let fault = try fault { () throws(OutboundFault) in _ = try send("GET", server, seconds: 0.2) }
      #expect(fault.kind == .timeout && !fault.isUnsent, "\(fault)")
      #expect(Deadline().awaits { isClosed.withLock { $0 } })
    }
  }

  @Test("Redirects are not followed")
  func redirects() throws {
    let other = try ScriptedServer([[Self.empty]])
    let server = try ScriptedServer([
      ["HTTP/1.1 302 Found\r\nLocation: \(other.origin)/\r\nContent-Length: 0\r\n\r\n"]
    ])
    #expect(try send("GET", server).status == 302)
    #expect(other.connections.withLock { $0 } == 0)
  }

  @Test("A pinned address is connected to in place of those of the host, which is still asked for by its name")
  func pinned() throws {
    let server = try ScriptedServer([[Self.empty]])
    var request = OutboundRequest("GET", "http://nowhere.invalid:\(server.port)", "/")
    request.pinnedAddress = "127.0.0.1"
    #expect(try client.send(request, limit: 0, before: .now + Deadline.patience).status == 200)
    #expect(server.requests.withLock { $0.first }?.contains("Host: nowhere.invalid:\(server.port)\r\n") == true)
  }

  @Test("Content is read as it comes, and the server is not read from while the reader takes nothing")
  func backpressure() throws {
    let sent = Locked(0)
    let total = 32 << 20
    let server = try ScriptedServer { connection, _ in
      _ = connection.request()
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
      let piece = String(repeating: "0123456789abcdef", count: 4_096)
      while sent.withLock({ $0 }) < total, connection.send(piece) { sent.withLock { $0 += piece.utf8.count } }
      _ = connection.request()
    }
    let transfer = try client.open(OutboundRequest("GET", server.origin, "/"))
    #expect(try transfer.head(before: .now + Deadline.patience).status == 200)
    // Only as much is sent as the kernels and the buffer hold: the count settles far below the whole.
    var last = -1
    #expect(
      Deadline().awaits(pauseMicroseconds: 200_000) {
        defer { last = sent.withLock { $0 } }
        return sent.withLock { $0 } == last
      })
    #expect(last < total / 2, "\(last) of \(total) bytes were sent")
    var (count, largest) = (0, 0)
    while true {
      let piece = try transfer.content(before: .now + Deadline.patience)
      if piece.isEmpty { break }
      largest = max(largest, piece.count)
      count += piece.count
    }
    #expect(count == total && largest <= 64 << 10 && transfer.isFinished)
  }

  @Test("A transfer that is cancelled or let go of closes its connection, and its reader gets a fault")
  func cancelling() throws {
    for isCancelled in [true, false] {
      let isClosed = Locked(false)
      let server = try ScriptedServer { connection, _ in
        _ = connection.request()
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        _ = connection.request()
        isClosed.withLock { $0 = true }
      }
      var transfer: OutboundTransfer? = try client.open(OutboundRequest("GET", server.origin, "/"))
      #expect(try transfer?.content(before: .now + Deadline.patience) == [UInt8(ascii: "x")])
      if isCancelled {
        transfer?.cancel()
        let fault = try fault { () throws(OutboundFault) in
          _ = try transfer?.content(before: .now + Deadline.patience)
        }
        #expect(fault.kind == .cancelled)
      } else {
        transfer = nil
      }
      #expect(Deadline().awaits { isClosed.withLock { $0 } })
      #expect(Deadline().awaits { client.transferCount == 0 })
    }
  }

  @Test("Many transfers run at a time on one thread; more than the limit are refused, and a stop ends all")
  func many() throws {
    var limits = OutboundClient.Limits()
    limits.transfers = 50
    let client = OutboundClient(caFile: nil, limits: limits)
    let server = try ScriptedServer { connection, _ in
      _ = connection.request()
      _ = connection.request()
    }
    let transfers = try (0..<50).map { _ in try client.open(OutboundRequest("POST", server.origin, "/")) }
    #expect(Deadline().awaits { server.requests.withLock { $0.count } == 50 })
    let refused = try fault { () throws(OutboundFault) in
      _ = try client.open(OutboundRequest("POST", server.origin, "/"))
    }
    #expect(refused.kind == .overloaded && refused.isUnsent)
    let told = Locked(0)
    for transfer in transfers { transfer.whenReadable { told.withLock { $0 += 1 } } }
    client.stop()
    #expect(told.withLock { $0 } == 100)
    for transfer in transfers {
      let fault = try fault { () throws(OutboundFault) in _ = try transfer.head(before: .now + Deadline.patience) }
      #expect(fault.kind == .cancelled && !fault.isUnsent)
    }
    let late = try fault { () throws(OutboundFault) in
      _ = try client.open(OutboundRequest("POST", server.origin, "/"))
    }
    #expect(late.isUnsent)
  }
}
