import Glibc

/// Ports of the loopback address 127.0.0.1.
package enum LoopbackPort {
  /// A port that nothing listens on now. Another process may take it before the server does for which it is meant; that
  /// server then ends with an error of its own.
  package static func free() throws(LoopbackError) -> UInt16 {
    let (descriptor, port) = try listen()
    close(descriptor)
    return port
  }

  /// A socket that listens on a port, 0 for any, and the port; the caller closes it.
  package static func listen(on port: UInt16 = 0) throws(LoopbackError) -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw LoopbackError(call: "socket") }
    var one: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in(loopbackPort: port)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && Glibc.listen(descriptor, 64) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    guard isListening else {
      defer { close(descriptor) }
      throw LoopbackError(call: "listen on port \(port)")
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }
}

extension sockaddr_in {
  /// 127.0.0.1 with this port.
  init(loopbackPort port: UInt16) {
    self.init()
    sin_family = sa_family_t(AF_INET)
    sin_port = port.bigEndian
    sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
  }
}
