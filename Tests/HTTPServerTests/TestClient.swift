import Glibc

/// A client that says exactly the bytes it is told, and reads with a deadline far beyond what any test needs.
final class TestClient {
  private let descriptor: Int32
  private var received: [UInt8] = []
  private(set) var isAtEnd = false

  init(port: UInt16, receiveBuffer: Int32? = nil, family: Int32 = AF_INET) throws {
    descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
    if var size = receiveBuffer {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    var patience = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    let status = family == AF_INET6 ? connect6(port) : connect4(port)
    guard status == 0 else { throw ConnectFailure(code: errno) }
  }

  struct ConnectFailure: Error { let code: Int32 }

  deinit { close(descriptor) }

  private func connect4(_ port: UInt16) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafeBytes(of: &address) {
      connect(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t($0.count))
    }
  }

  private func connect6(_ port: UInt16) -> Int32 {
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    address.sin6_addr = in6addr_loopback
    return withUnsafeBytes(of: &address) {
      connect(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t($0.count))
    }
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  func get(_ target: String, _ lines: String = "") { send("GET \(target) HTTP/1.1\r\nHost: a\r\n\(lines)\r\n") }

  /// Reads until `text` has come, and gives everything up to its end; or what came before the connection ended.
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

  /// Reads one chunk of a response and gives its content, empty for the last; `nil` where the connection ended.
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

  /// Whether anything, or the end, can be read within the time.
  func hasInput(milliseconds: Int32) -> Bool {
    var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&poller, 1, milliseconds) > 0
  }

  private func receive() -> Bool {
    guard !isAtEnd else { return false }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else {
      isAtEnd = count == 0 || errno == ECONNRESET
      return false
    }
    received += buffer[..<count]
    return true
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
