import Glibc
import Support
import TestKit

/// The ports of the nodes of these tests. They are known before the nodes are started, since every node lists the
/// addresses of the others.
enum NodePorts {
  /// Below the ports that the kernel assigns.
  private static let range: Range<UInt16> = {
    let first = UInt16.random(in: 20_000..<32_000)
    return first..<(first + 100)
  }()
  private static let next = Locked(range.lowerBound)

  /// The addresses of all, in the form of `nodes.urls`.
  static let urls = range.map { "http://127.0.0.1:\($0)" }.joined(separator: ",")

  /// Returns the next port that nothing listens on.
  static func take() throws -> UInt16 {
    try next.withLock { next in
      while next < range.upperBound {
        defer { next += 1 }
        if isFree(next) { return next }
      }
      throw LoopbackError("there are no ports left for nodes")
    }
  }

  private static func isFree(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var reuses: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuses, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}
