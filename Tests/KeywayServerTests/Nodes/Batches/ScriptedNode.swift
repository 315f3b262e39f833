import Foundation
import Glibc
import HTTPServer
import Outbound
import Store
import Support
import TestKit

@testable import Cluster
@testable import KeywayServer

/// A node that answers requests by a test's script, each connection on a thread of its own.
final class ScriptedNode: Sendable {
  /// A received request.
  struct Request: Sendable {
    let line: String
    let head: String
    let body: [UInt8]

    /// The writes, if it is a batch.
    var writes: [CarriedMessage]? {
      line.contains(" \(WriteBatch.target) ") ? try? WriteBatch.requests(in: body) : nil
    }
  }

  /// Returns the bytes to send for a request; nil closes the connection.
  typealias Script = @Sendable (_ number: Int, Request) -> [UInt8]?

  let requests = Locked<[Request]>([])
  let connections = Locked(0)
  private let listener: LoopbackListener

  init(_ script: @escaping Script) throws {
    listener = try LoopbackListener()
    let (listener, requests, connections) = (listener, requests, connections)
    Thread.detachNewThread {
      while let client = listener.accept() {
        connections.withLock { $0 += 1 }
        Thread.detachNewThread {
          while let request = Self.request(on: client) {
            let number = requests.withLock { requests in
              requests.append(request)
              return requests.count - 1
            }
            guard let answer = script(number, request) else { break }
            _ = Glibc.send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
          }
          close(client)
        }
      }
    }
  }

  deinit { listener.stop() }

  func client() throws -> NodeClient { NodeClient(try NodeAddress("http://127.0.0.1:\(listener.port)"), keeping: 4) }

  private static func request(on client: Int32) -> Request? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      if let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) {
        let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
        let length = head.firstMatch(of: /Content-Length: ([0-9]+)/).flatMap { Int($0.1) } ?? 0
        if bytes.count >= end.upperBound + length {
          return Request(
            line: String(head.prefix { $0 != "\r\n" }), head: head, body: Array(bytes[end.upperBound...]))
        }
      }
      let count = recv(client, &buffer, buffer.count, 0)
      guard count > 0 else { return nil }
      bytes += buffer[..<count]
    }
  }

  /// Makes a response with a status and a body.
  static func answer(_ status: Int = 200, _ body: [UInt8] = []) -> [UInt8] {
    Array("HTTP/1.1 \(status) X\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
  }

  /// Makes the response to a request: for each write, its own body with the status that `status` returns, by default
  /// 200; with the records in `handed`.
  static func echo(
    _ request: Request, handed: HandedRecords? = nil, status: (CarriedMessage) -> Int = { _ in 200 }
  ) -> [UInt8] {
    guard let writes = request.writes else { return answer(200, request.body) }
    let answers = writes.map { NodeAnswer(status: status($0), fields: [("A", "b")], body: $0.body) }
    return answer(200, WriteBatch.encoded(answers, handed))
  }
}

extension NodeClient {
  /// Makes a client of a node in a test, which trusts the system's certificates.
  convenience init(_ address: NodeAddress, keeping idleLimit: Int) {
    self.init(address, keeping: idleLimit, by: OutboundClient(caFile: nil))
  }
}
