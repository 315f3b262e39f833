import Glibc
import Support

/// A bound socket that listens, before libmicrohttpd gets it: made here so that a failure has a reason, and so that the
/// port is known to be free before anything else is begun. Connections wait in its backlog until a `Server` accepts
/// them. Closed with the last reference, unless a daemon has taken it.
package final class ListeningSocket: Sendable {
  /// The port it is bound to, also where port 0 was asked for; 0 where it has a file.
  package let port: UInt16
  /// Its file, where it is one of this machine and none of the network.
  let file: SocketFile?
  private let descriptor: Locked<Int32?>

  /// Binds the first address that `host`, a numeric address or a name, stands for; an IPv6 wildcard serves IPv4 as
  /// well. Port 0 takes a free one. `unix:` and a path make a socket of this machine, without a port. Throws
  /// `unknownHost`, `cannotListen` or `cannotListenAt`.
  package init(host: String, port: UInt16) throws(HTTPServerError) {
    if let path = SocketFile.path(ofHost: host) {
      let (descriptor, file) = try SocketFile.listen(at: path)
      self.descriptor = Locked(descriptor)
      self.file = file
      self.port = 0
      return
    }
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(port), &hints, &found)
    guard status == 0, let address = found else {
      throw .unknownHost(host, reason: String(cString: gai_strerror(status)))
    }
    defer { freeaddrinfo(found) }
    let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(address.pointee.ai_family, flags, 0)
    guard descriptor >= 0 else { throw .cannotListen(host: host, port: port, errno: errno) }
    setOption(SO_REUSEADDR, 1, level: SOL_SOCKET, of: descriptor)
    if address.pointee.ai_family == AF_INET6 {
      setOption(IPV6_V6ONLY, 0, level: Int32(IPPROTO_IPV6), of: descriptor)
    }
    guard bind(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0,
      listen(descriptor, 16_384) == 0
    else {
      let reason = errno
      close(descriptor)
      throw .cannotListen(host: host, port: port, errno: reason)
    }
    self.descriptor = Locked(descriptor)
    file = nil
    self.port = Self.port(of: descriptor)
  }

  deinit {
    guard let descriptor = take() else { return }
    file?.remove()
    close(descriptor)
  }

  /// Bounds what the kernel holds for each of the connections that are accepted, which inherit it (tcp(7)): of what a
  /// connection sends, beyond what it may send at once (`TCP_NOTSENT_LOWAT`), and of what its client sends and nobody
  /// has read (`SO_RCVBUF`). Without the second the kernel lets it grow to megabytes; all connections of the machine
  /// share that memory, and where it is used up, the kernel throws away what others send.
  func limitBuffers(unsentBytes: Int, unreadBytes: Int) {
    descriptor.withLock { descriptor in
      guard let descriptor else { return }
      setOption(TCP_NOTSENT_LOWAT, Int32(clamping: unsentBytes), level: Int32(IPPROTO_TCP), of: descriptor)
      setOption(SO_RCVBUF, Int32(clamping: unreadBytes), level: SOL_SOCKET, of: descriptor)
    }
  }

  /// The descriptor, for the caller to close from now on; nil where it has been taken.
  func take() -> Int32? {
    descriptor.withLock { descriptor in
      defer { descriptor = nil }
      return descriptor
    }
  }

  private static func port(of descriptor: Int32) -> UInt16 {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &address) { bytes -> UInt16 in
      guard let start = bytes.baseAddress else { return 0 }
      getsockname(descriptor, start.assumingMemoryBound(to: sockaddr.self), &length)
      // The port follows the family in IPv4 and IPv6 addresses alike.
      return UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    }
  }
}

/// Sets an integer option of a socket. A failure leaves the kernel's default, which all callers can live with.
func setOption(_ option: Int32, _ value: Int32, level: Int32, of descriptor: Int32) {
  var value = value
  setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
}
