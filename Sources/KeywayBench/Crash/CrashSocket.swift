import Glibc

/// A blocking connection to a port of this machine.
final class CrashSocket: Sendable {
  private let descriptor: Int32

  /// Connects; nothing waits longer than `timeoutSeconds`.
  init(port: UInt16, timeoutSeconds: Int) throws(CrashError) {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .call("socket") }
    var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    let result = Self.withLoopback(port) { connect(descriptor, $0, $1) }
    // A descriptor that is not given away is closed by `deinit`, also after this.
    guard result == 0 else { throw .refused }
  }

  deinit { close(descriptor) }

  /// Sends everything.
  func send(_ bytes: [UInt8]) throws(CrashError) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw .disconnected("send") }
      sent += count
    }
  }

  /// The next bytes; empty where the other side has closed.
  func receive() throws(CrashError) -> [UInt8] {
    var received = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
      received = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      initialized = max(0, received)
    }
    if received >= 0 { return bytes }
    throw errno == EAGAIN ? .timedOut("recv") : .disconnected("recv: \(String(cString: strerror(errno)))")
  }

  /// A port that nobody listens on now.
  static func freePort() throws(CrashError) -> UInt16 {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { throw .call("socket") }
    defer { close(listener) }
    guard withLoopback(0, { bind(listener, $0, $1) }) == 0 else { throw .call("bind") }
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &size) }
    }
    guard result == 0 else { throw .call("getsockname") }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func withLoopback(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
