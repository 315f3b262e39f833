import Glibc
import Support

/// A bound, listening socket, created before libmicrohttpd gets it, so that a failure has a reason, and so that the
/// port is known to be free before anything else is started. Connections wait in its backlog until a `Server` accepts
/// them. Closed with the last reference, unless a daemon has taken it.
package final class ListeningSocket: Sendable {
  /// The bound port, even if port 0 was requested; 0 for a Unix domain socket.
  package let port: UInt16
  /// The file of a Unix domain socket; nil for a network socket.
  let file: SocketFile?
  private let descriptor: Locked<Int32?>

  /// Binds the first address that `host`, a numeric address or a name, resolves to; an IPv6 wildcard also serves IPv4.
  /// Port 0 selects a free port. `unix:` followed by a path creates a Unix domain socket, without a port. Throws
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

  /// Bounds the kernel's buffers for each accepted connection, which inherits the options (tcp(7)): the data to send
  /// beyond what may be sent immediately (`TCP_NOTSENT_LOWAT`), and the received data that was not read (`SO_RCVBUF`).
  /// Without the second, the kernel lets the buffer grow to megabytes; all connections of the machine share that
  /// memory, and when it is used up, the kernel drops what others send.
  func limitBuffers() {
    descriptor.withLock { descriptor in
      guard let descriptor else { return }
      setOption(TCP_NOTSENT_LOWAT, 131_072, level: Int32(IPPROTO_TCP), of: descriptor)
      setOption(SO_RCVBUF, 65_536, level: SOL_SOCKET, of: descriptor)
    }
  }

  /// Returns the descriptor, which the caller then closes; nil if it has already been taken.
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

/// Sets an integer option of a socket. A failure leaves the kernel's default, which all callers tolerate.
func setOption(_ option: Int32, _ value: Int32, level: Int32, of descriptor: Int32) {
  var value = value
  setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
}

/// Peeks at the next byte of a socket without consuming it. Returns 1 if there is one, 0 if the other side has ended,
/// and a negative number if nothing has arrived.
///
/// Not in a file that imports CMicrohttpd: its header and Glibc both include <sys/socket.h>, and which of the two
/// provides the constants would depend on the order of the files.
func peekByte(of descriptor: Int32) -> Int {
  var byte: UInt8 = 0
  return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
}

/// The file of a listening Unix domain socket (unix(7)).
package final class SocketFile: Sendable {
  /// The prefix of a path in place of a host.
  private static let prefix = "unix:"
  /// The permissions to connect: owner and group.
  private static let mode: mode_t = 0o660

  private let path: String
  private let device: dev_t
  private let inode: ino_t

  private init(path: String, _ status: stat) {
    self.path = path
    device = status.st_dev
    inode = status.st_ino
  }

  /// Returns the path in a host such as `unix:/run/keyway.sock`; nil for any other host.
  package static func path(ofHost host: String) -> String? {
    host.hasPrefix(prefix) ? String(host.dropFirst(prefix.count)) : nil
  }

  /// Returns a socket that listens at a path, and its file. Replaces a socket on which no process listens any more.
  /// Throws `cannotListenAt` if a process does listen, or if the path is anything other than a socket.
  fileprivate static func listen(at path: String) throws(HTTPServerError) -> (descriptor: Int32, file: SocketFile) {
    guard let address = address(of: path) else {
      throw .cannotListenAt(path: path, reason: "'unix:' must be followed by a path of 1 to \(maximumPathBytes) bytes")
    }
    try removeStale(path, address)
    let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(AF_UNIX, flags, 0)
    guard descriptor >= 0 else { throw failure(path) }
    guard call(bind, descriptor, address) == 0 else {
      let failure = failure(path)
      close(descriptor)
      throw failure
    }
    var status = stat()
    // Before listening, so that no one without permission can connect.
    guard chmod(path, mode) == 0, lstat(path, &status) == 0, Glibc.listen(descriptor, 16_384) == 0 else {
      let failure = failure(path)
      close(descriptor)
      unlink(path)
      throw failure
    }
    return (descriptor, SocketFile(path: path, status))
  }

  /// Removes the file, unless another one has replaced it.
  func remove() {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode else { return }
    unlink(path)
  }

  /// Removes the socket that an ended process has left.
  private static func removeStale(_ path: String, _ address: sockaddr_un) throws(HTTPServerError) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else {
      throw .cannotListenAt(path: path, reason: "the file exists, and it is not a socket")
    }
    let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard probe >= 0 else { throw failure(path) }
    defer { close(probe) }
    // Only this error shows that no process listens.
    guard call(connect, probe, address) != 0, errno == ECONNREFUSED else {
      throw .cannotListenAt(path: path, reason: "another process listens there")
    }
    guard unlink(path) == 0 || errno == ENOENT else { throw failure(path) }
  }

  private static func failure(_ path: String) -> HTTPServerError {
    .cannotListenAt(path: path, reason: String(cString: strerror(errno)))
  }

  // MARK: Addresses

  /// The kernel expects a terminating zero.
  private static let maximumPathBytes = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

  private static func address(of path: String) -> sockaddr_un? {
    guard !path.isEmpty, path.utf8.count <= maximumPathBytes, !path.utf8.contains(0) else { return nil }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return address
  }

  private static func call(
    _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ descriptor: Int32, _ address: sockaddr_un
  ) -> Int32 {
    withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}
