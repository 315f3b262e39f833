import Glibc
import TestKit

/// A client at another address of this machine, 127.0.0.2: to the server, another client.
struct Neighbour {
  let port: UInt16

  /// Sends a request and returns the whole response as text.
  func send(_ method: String, _ target: String, _ headers: [String: String] = [:], body: String = "") throws -> String {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    try Self.use("127.0.0.2", 0) { bind(descriptor, $0, $1) }
    try Self.use("127.0.0.1", port) { connect(descriptor, $0, $1) }
    let fields = headers.map { "\($0.key): \($0.value)\r\n" }.joined()
    let request =
      "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\(fields)"
      + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    let bytes = Array(request.utf8)
    guard Glibc.send(descriptor, bytes, bytes.count, 0) == bytes.count else { throw LoopbackError("send") }
    var response: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { return String(decoding: response, as: UTF8.self) }
      response += buffer[..<count]
    }
  }

  private static func use(
    _ text: String, _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    inet_pton(AF_INET, text, &address.sin_addr)
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
    guard status == 0 else { throw LoopbackError("\(text):\(port): \(String(cString: strerror(errno)))") }
  }
}
