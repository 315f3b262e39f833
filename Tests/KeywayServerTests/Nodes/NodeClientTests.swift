import Foundation
import Glibc
import HTTPServer
import HTTPTypes
import Store
import Support
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

@Suite("Requests between nodes") struct NodeClientTests {
  /// A server that accepts one connection after the other and answers each by its script: nil closes it without a
  /// response, once the whole request has arrived.
  private final class ScriptedServer: Sendable {
    let requests = Locked<[String]>([])
    private let listener: LoopbackListener

    init(_ script: [[String?]]) throws {
      listener = try LoopbackListener()
      let (listener, requests) = (listener, requests)
      Thread.detachNewThread {
        for answers in script {
          guard let client = listener.accept() else { return }
          for answer in answers {
            var text = ""
            while !text.contains("\r\n\r\n") {
              var bytes = [UInt8](repeating: 0, count: 4_096)
              let count = recv(client, &bytes, bytes.count, 0)
              guard count > 0 else { break }
              text += String(decoding: bytes[..<count], as: UTF8.self)
            }
            // A connection that is closed before it is used has no request.
            guard !text.isEmpty else { break }
            let request = text
            requests.withLock { $0.append(request) }
            guard let answer else { break }
            _ = Glibc.send(client, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
          }
          close(client)
        }
      }
    }

    deinit { listener.stop() }

    func client() throws -> NodeClient { NodeClient(try NodeAddress("http://127.0.0.1:\(listener.port)"), keeping: 4) }
  }

  private static let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

  private func send(_ client: NodeClient, _ method: String = "PUT") throws -> NodeAnswer {
    try client.send(NodeRequest(method, "/x"), silence: .seconds(30), limit: 1_000)
  }

  @Test("A file with anything but one token is a fault, and no header")
  func token() throws {
    let folder = try ScratchDirectory()
    let good = NodeToken(file: try folder.write("a.b.c\n", to: "good"))
    #expect(try good.fields.map(\.value) == ["Bearer a.b.c"])
    for text in ["", "\n", "a b", "a\nb\n", "a\r\nX: y", "\u{1B}"] {
      let token = NodeToken(file: try folder.write(text, to: "bad"))
      #expect(performing: { _ = try token.fields }, throws: { "\($0)".contains("must contain exactly one token") })
    }
  }

  @Test("A refusal of another node names the state that judged it; what it could not judge names none of its states")
  func cursors() throws {
    let fields = [("Keyway-Cursor", "e-0"), ("Retry-After", "1"), ("Date", "now")]
    for (status, names) in [(409, ["Keyway-Cursor", "Retry-After"]), (503, ["Retry-After"])] {
      #expect(try NodeAnswer(status: status, fields: fields).passedBack().fields.lines.map(\.name) == names)
    }
  }

  @Test("Answers with a length, in chunks and without content are read whole, one after the other on one connection")
  func answers() throws {
    let server = try ScriptedServer([
      [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
          + "3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nTrailer: x\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n", Self.empty,
      ]
    ])
    let client = try server.client()
    let first = try send(client)
    #expect(first.status == 200 && first.body == Array("hello".utf8) && first["x-a"] == "b")
    #expect(try send(client).body == Array("abcd".utf8))
    #expect(try send(client).status == 204)
    #expect(try send(client, "GET").status == 200)
    #expect(server.requests.withLock { $0.count } == 4)
  }

  @Test(
    "A request that may have been received is not sent again: the fault leaves the outcome open",
    arguments: [nil, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "SIP/2.0 200 OK\r\n\r\n"])
  func once(answer: String?) throws {
    // The first connection is kept; the second would receive a retry.
    let server = try ScriptedServer([[Self.empty, answer], [Self.empty, Self.empty]])
    let client = try server.client()
    _ = try send(client)
    let fault = #expect(throws: NodeFault.self) { try self.send(client) }
    #expect(try #require(fault).isUnsent == false)
    #expect(server.requests.withLock { $0.count } == 2)
  }

  @Test("A connection that the other side has closed meanwhile is replaced before anything is sent")
  func closed() throws {
    let server = try ScriptedServer([[Self.empty], [Self.empty]])
    let client = try server.client()
    _ = try send(client)
    // By now the first connection is closed, or the next response comes on it: it answers only once.
    #expect(Deadline().awaits { server.requests.withLock { $0.count } == 1 })
    usleep(200_000)
    #expect(try send(client).status == 200)
    #expect(server.requests.withLock { $0.count } == 2)
  }

  @Test("If no node listens, and once it is cut, nothing was sent")
  func unreachable() throws {
    let port = try LoopbackPort.free()
    let client = NodeClient(try NodeAddress("http://127.0.0.1:\(port)"), keeping: 1)
    let fault = #expect(throws: NodeFault.self) { try self.send(client) }
    #expect(try #require(fault).isUnsent)
    let server = try ScriptedServer([[Self.empty]])
    let other = try server.client()
    other.cut()
    let cut = #expect(throws: NodeFault.self) { try self.send(other) }
    #expect(try #require(cut).isUnsent)
    #expect(server.requests.withLock { $0.isEmpty })
  }

  @Test("An answer that is larger than its limit, or has no length, is a fault")
  func limits() throws {
    for answer in [
      "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + String(repeating: "x", count: 1_001),
      "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 70_000) + "\r\n\r\n",
    ] {
      let server = try ScriptedServer([[answer]])
      let client = try server.client()
      #expect(throws: NodeFault.self, "\(answer.prefix(50))") { try self.send(client) }
    }
  }

  @Test("Addresses of nodes: http or https with a host and perhaps a port, or a socket")
  func addresses() throws {
    for (text, authority) in [
      ("http://a.example.org", "a.example.org"), ("http://127.0.0.1:8080", "127.0.0.1:8080"),
      ("http://[::1]:8080/", "[::1]:8080"), ("unix:/run/keyway", "localhost"),
      ("https://a.example.org", "a.example.org"), ("https://[::1]:8443", "[::1]:8443"),
    ] {
      let address = try NodeAddress(text)
      #expect(address.authority == authority && address.description == text)
      #expect(address.isSecure == text.hasPrefix("https:"))
    }
    for text in [
      "", "a", "ftp://a", "https://", "https://a/b", "HTTPS://a", "http://", "http://:80", "http://a:0",
      "http://a:65536", "http://a:x", "http://a:",
      "http://a/b", "http://a?b", "http://u@a", "unix:", "unix:" + String(repeating: "x", count: 108), "http://[::1",
    ] {
      #expect(throws: NodeFault.self, "\(text)") { try NodeAddress(text) }
    }
  }

  @Test("A batch of records is read back as it was, and every byte of it that is changed or missing is found out")
  func batches() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<20 {
      let after = UInt64.random(in: 0..<1 << 40, using: &random)
      let digest = JournalDigest(value: random.next())
      let records = (0..<Int.random(in: 0..<5, using: &random)).map { index in
        JournalRecord(
          revision: after + UInt64(index) + 1, milliseconds: Int64.random(in: .min ... .max, using: &random),
          body: (0..<Int.random(in: 0..<40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
      }
      let batch = RecordBatch(
        newest: random.next(), silenceMilliseconds: random.next(), revocations: JournalDigest(value: random.next()),
        records: records)
      let bytes = batch.encoded(after: digest)
      #expect(try RecordBatch(bytes, after: after, digest) == batch, "seed \(seed)")
      for length in 0..<bytes.count {
        #expect(throws: NodeFault.self) { try RecordBatch(Array(bytes[..<length]), after: after, digest) }
      }
      #expect(throws: NodeFault.self) { try RecordBatch(bytes + [0], after: after, digest) }
      // The digests protect the records themselves.
      for index in RecordBatch.emptyBytes..<max(RecordBatch.emptyBytes, bytes.count) {
        var damaged = bytes
        damaged[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        #expect(throws: NodeFault.self, "seed \(seed), byte \(index)") {
          try RecordBatch(damaged, after: after, digest)
        }
      }
      guard !records.isEmpty else { continue }
      let other = JournalDigest(value: digest.value ^ 1)
      #expect(throws: NodeFault.self) { try RecordBatch(bytes, after: after, other) }
    }
  }
}
