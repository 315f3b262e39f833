import Foundation
import Glibc
import Support
import TestKit

/// A server that handles each connection by a test's script, on a thread of its own.
final class ScriptedServer: Sendable {
  /// The heads of the received requests, with their bodies.
  let requests = Locked<[String]>([])
  /// The number of accepted connections.
  let connections = Locked(0)
  private let listener: LoopbackListener

  /// Starts the server. `serve` is called for each connection, with its number from 0, and must not close it.
  init(_ serve: @escaping @Sendable (Connection, Int) -> Void) throws {
    listener = try LoopbackListener()
    let (listener, requests, connections) = (listener, requests, connections)
    Thread.detachNewThread {
      while let descriptor = listener.accept() {
        let number = connections.withLock { count in
          defer { count += 1 }
          return count
        }
        Thread.detachNewThread {
          serve(Connection(descriptor: descriptor, requests: requests), number)
          close(descriptor)
        }
      }
    }
  }

  deinit { listener.stop() }

  /// Starts a server that sends the responses of a connection's script, one for each request. Nil, and the end of the
  /// script, close the connection.
  convenience init(_ script: [[String?]]) throws {
    try self.init { connection, number in
      for answer in number < script.count ? script[number] : [] {
        guard connection.request() != nil, let answer else { return }
        connection.send(answer)
      }
    }
  }

  /// The port.
  var port: UInt16 { listener.port }
  /// The origin of its URLs.
  var origin: String { "http://127.0.0.1:\(port)" }

  /// A connection that was accepted.
  struct Connection: Sendable {
    let descriptor: Int32
    let requests: Locked<[String]>

    /// Waits for a request, and returns its head and body; nil at the end.
    func request() -> String? {
      var text = ""
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        if let end = text.firstRange(of: "\r\n\r\n") {
          let length = text.firstMatch(of: /\r\nContent-Length: ([0-9]+)/).flatMap { Int($0.1) } ?? 0
          if text[end.upperBound...].utf8.count >= length {
            requests.withLock { [text] in $0.append(text) }
            return text
          }
        }
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        text += String(decoding: buffer[..<count], as: UTF8.self)
      }
    }

    /// Sends a text. Returns false if the other side has closed the connection.
    @discardableResult
    func send(_ text: String) -> Bool {
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }
  }
}
