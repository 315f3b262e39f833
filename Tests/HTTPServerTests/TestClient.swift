import Glibc
import TestKit

/// A client that sends exactly the given bytes, and reads with a deadline far beyond the needs of any test.
final class TestClient {
  private let socket: WireSocket
  private var received: [UInt8] = []
  private(set) var isAtEnd = false

  init(port: UInt16, receiveBuffer: Int32? = nil, family: Int32 = AF_INET) throws(LoopbackError) {
    let host = family == AF_INET6 ? "[::1]" : "127.0.0.1"
    socket = try WireSocket(try SocketAddress(server: "http://\(host):\(port)"), receiveBufferBytes: receiveBuffer)
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  /// Sends bytes; the server may have closed the connection before it has them.
  func send(_ bytes: [UInt8]) { try? socket.send(bytes) }

  func get(_ target: String, _ lines: String = "") { send("GET \(target) HTTP/1.1\r\nHost: a\r\n\(lines)\r\n") }

  /// Closes the sending side of the connection.
  func finish() { shutdown(socket.descriptor, Int32(SHUT_WR)) }

  /// Reads until `text` has arrived. Returns everything up to its end, or what arrived before the connection ended.
  func read(until text: String) -> String {
    let wanted = Array(text.utf8)
    var searched = 0
    while true {
      if let end = firstEnd(of: wanted, from: searched) { return take(end) }
      searched = max(0, received.count - wanted.count)
      guard receive() else { return take(received.count) }
    }
  }

  /// Reads head and counted body of one response.
  func readResponse() -> (head: String, body: String) {
    let head = read(until: "\r\n\r\n")
    let line = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
    let count = line.flatMap { Int($0.dropFirst(16)) } ?? 0
    while received.count < count, receive() {}
    return (head, take(min(count, received.count)))
  }

  /// Reads one chunk of a response. Returns its content, empty for the last one, or nil if the connection ended.
  func readChunk() -> String? {
    let line = read(until: "\r\n")
    guard let size = Int(line.dropLast(1), radix: 16) else { return nil }
    while received.count < size + 2, receive() {}
    guard received.count >= size + 2 else { return nil }
    return String(take(size + 2).dropLast(1))
  }

  func readToEnd() -> String {
    while receive() {}
    return take(received.count)
  }

  /// Returns true if bytes, or the end, can be read within the time.
  func hasInput(milliseconds: Int32) -> Bool {
    var poller = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&poller, 1, milliseconds) > 0
  }

  private func receive() -> Bool {
    guard !isAtEnd else { return false }
    do {
      let bytes = try socket.receive(before: Deadline())
      isAtEnd = bytes.isEmpty
      received += bytes
    } catch {
      isAtEnd = error.reason == .connectionReset
      return false
    }
    return !isAtEnd
  }

  private func firstEnd(of wanted: [UInt8], from start: Int) -> Int? {
    guard received.count >= wanted.count else { return nil }
    for index in start...(received.count - wanted.count)
    where received[index] == wanted[0] && received[index..<(index + wanted.count)].elementsEqual(wanted) {
      return index + wanted.count
    }
    return nil
  }

  private func take(_ count: Int) -> String {
    defer { received.removeFirst(count) }
    return String(decoding: received[..<count], as: UTF8.self)
  }
}
