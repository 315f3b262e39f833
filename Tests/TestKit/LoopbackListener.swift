import Glibc

/// A socket that listens on a port of this machine, open as long as it is referenced: a thread that accepts on it and
/// the object that stops it share it, so neither can use a descriptor that has been closed and reused.
package final class LoopbackListener: Sendable {
  /// The port.
  package let port: UInt16
  private let descriptor: Int32

  /// Listens on a port of 127.0.0.1, 0 for any free one.
  package init(on port: UInt16 = 0) throws(LoopbackError) {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw LoopbackError(call: "socket") }
    var one: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in(loopbackPort: port)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && listen(descriptor, 64) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    guard isListening else {
      let error = LoopbackError(call: "listen on port \(port)")
      close(descriptor)
      throw error
    }
    self.port = UInt16(bigEndian: address.sin_port)
  }

  deinit { close(descriptor) }

  /// Waits for a connection and returns its descriptor, which the caller closes; nil once the listener is stopped.
  package func accept() -> Int32? {
    let connection = Glibc.accept(descriptor, nil, nil)
    return connection >= 0 ? connection : nil
  }

  /// Takes no more connections, and ends a wait for one. Can be called from any thread.
  package func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}

extension sockaddr_in {
  /// Creates the address of 127.0.0.1 with this port.
  init(loopbackPort port: UInt16) {
    self.init()
    sin_family = sa_family_t(AF_INET)
    sin_port = port.bigEndian
    sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
  }
}

/// Ports of the loopback address 127.0.0.1.
package enum LoopbackPort {
  /// Returns a port that nothing listens on now. Another process may take it before the server that it is for; that
  /// server then ends with an error of its own.
  package static func free() throws(LoopbackError) -> UInt16 { try LoopbackListener().port }
}
