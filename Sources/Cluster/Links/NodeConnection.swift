import Glibc
import KeywayServer

/// A connection to another node. One thread at a time uses it; any thread may call `cut()`.
final class NodeConnection: Sendable {
  /// The time by which an operation must finish.
  typealias Deadline = ContinuousClock.Instant

  let descriptor: Int32
  /// The maximum number of bytes received at once. The C library trims its whole heap when twice as much is freed.
  private static let pieceBytes = 1 << 15

  /// Connects to a node. Throws a fault with `isUnsent`.
  init(_ address: NodeAddress, before deadline: Deadline) throws(NodeFault) {
    switch address.place {
    case .socket(let path): descriptor = try Self.connect(path, address, deadline)
    case .host(let host, let port): descriptor = try Self.connect(host, port, address, deadline)
    }
  }

  deinit { close(descriptor) }

  /// Shuts down the connection, which ends a send or receive in progress.
  func cut() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// True if the other side has kept the connection open and has not sent any unsolicited data.
  var isOpen: Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) < 0 && errno == EAGAIN
  }

  /// Sends all bytes. Throws a fault with `isUnsent`: no server carries out a request that the kernel did not accept
  /// whole.
  func send(_ bytes: [UInt8], before deadline: Deadline) throws(NodeFault) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        Glibc.send(descriptor, buffer.baseAddress?.advanced(by: sent), buffer.count - sent, Int32(MSG_NOSIGNAL))
      }
      if count > 0 {
        sent += count
      } else if errno == EAGAIN {
        try wait(Int16(POLLOUT), before: deadline, isUnsent: true)
      } else if errno != EINTR {
        throw NodeFault("the connection was lost while sending: \(Self.reason)", isUnsent: true)
      }
    }
  }

  /// Waits for the next bytes and returns them; empty at the end.
  func receive(before deadline: Deadline) throws(NodeFault) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.pieceBytes)
    while true {
      let count = bytes.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count >= 0 {
        bytes.removeLast(bytes.count - count)
        return bytes
      }
      if errno == EAGAIN {
        try wait(Int16(POLLIN), before: deadline, isUnsent: false)
      } else if errno != EINTR {
        throw NodeFault("the connection was lost: \(Self.reason)")
      }
    }
  }

  /// Returns the bytes that have arrived, without waiting: nil if none have, empty at the end.
  func receiveNow() throws(NodeFault) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: Self.pieceBytes)
    let count = bytes.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT)) }
    guard count >= 0 else {
      guard errno != EAGAIN, errno != EINTR else { return nil }
      throw NodeFault("the connection was lost: \(Self.reason)")
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// Enables TCP keep-alive, so that the kernel detects within half a minute that the other machine is gone although
  /// nothing is sent.
  func watchPeer() {
    let options: [(level: Int32, name: Int32, value: Int32)] = [
      (SOL_SOCKET, SO_KEEPALIVE, 1), (Int32(IPPROTO_TCP), TCP_KEEPIDLE, 10), (Int32(IPPROTO_TCP), TCP_KEEPINTVL, 5),
      (Int32(IPPROTO_TCP), TCP_KEEPCNT, 3),
    ]
    for option in options {
      var value = option.value
      // A Unix domain socket has no TCP options, and needs none.
      _ = setsockopt(descriptor, option.level, option.name, &value, socklen_t(MemoryLayout<Int32>.size))
    }
  }

  private func wait(_ events: Int16, before deadline: Deadline, isUnsent: Bool) throws(NodeFault) {
    guard try Self.isReady(descriptor, events, before: deadline) else {
      throw NodeFault("no answer arrived in time", isUnsent: isUnsent, isSilence: true)
    }
  }

  private static func isReady(_ descriptor: Int32, _ events: Int16, before deadline: Deadline) throws(NodeFault) -> Bool
  {
    while true {
      let rest = (deadline - .now).components
      guard rest.seconds >= 0, rest.attoseconds >= 0 else { return false }
      var entry = pollfd(fd: descriptor, events: events, revents: 0)
      let milliseconds = min(rest.seconds, 86_400) * 1_000 + rest.attoseconds / 1_000_000_000_000_000 + 1
      let count = poll(&entry, 1, Int32(milliseconds))
      if count > 0 { return true }
      if count == 0 { return false }
      guard errno == EINTR else { throw NodeFault("cannot poll the connection: \(reason)") }
    }
  }

  private static var reason: String { String(cString: strerror(errno)) }

  // MARK: Connecting

  private static func connect(_ path: String, _ address: NodeAddress, _ deadline: Deadline) throws(NodeFault) -> Int32 {
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    return try withUnsafeBytes(of: &name) { bytes throws(NodeFault) in
      let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
      return try open(AF_UNIX, pointer, length, address, deadline)
    }
  }

  /// Tries the addresses of a host in the order in which the resolver returns them.
  private static func connect(
    _ host: String, _ port: String, _ address: NodeAddress, _ deadline: Deadline
  ) throws(NodeFault) -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = Int32(AI_NUMERICSERV)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, port, &hints, &found)
    guard status == 0 else {
      throw NodeFault("\(address) cannot be looked up: \(String(cString: gai_strerror(status)))", isUnsent: true)
    }
    defer { freeaddrinfo(found) }
    var fault = NodeFault("\(address) has no address", isUnsent: true)
    var next = found
    while let entry = next?.pointee {
      do throws(NodeFault) {
        return try open(entry.ai_family, entry.ai_addr, entry.ai_addrlen, address, deadline)
      } catch {
        fault = error
      }
      next = entry.ai_next
    }
    throw fault
  }

  private static func open(
    _ family: Int32, _ name: UnsafePointer<sockaddr>?, _ length: socklen_t, _ address: NodeAddress, _ deadline: Deadline
  ) throws(NodeFault) -> Int32 {
    let flags = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(family, flags, 0)
    guard descriptor >= 0 else { throw NodeFault("cannot create a socket for \(address): \(reason)", isUnsent: true) }
    do throws(NodeFault) {
      try complete(descriptor, name, length, address, deadline)
    } catch {
      close(descriptor)
      throw error
    }
    var isOn: Int32 = 1
    if family != AF_UNIX {
      _ = setsockopt(
        descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
    }
    return descriptor
  }

  private static func complete(
    _ descriptor: Int32, _ name: UnsafePointer<sockaddr>?, _ length: socklen_t, _ address: NodeAddress,
    _ deadline: Deadline
  ) throws(NodeFault) {
    if Glibc.connect(descriptor, name, length) == 0 { return }
    guard errno == EINPROGRESS || errno == EAGAIN else {
      throw NodeFault("\(address) cannot be reached: \(reason)", isUnsent: true)
    }
    guard try isReady(descriptor, Int16(POLLOUT), before: deadline) else {
      throw NodeFault("\(address) cannot be reached in time", isUnsent: true)
    }
    var status: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &status, &size) == 0, status == 0 else {
      throw NodeFault("\(address) cannot be reached: \(String(cString: strerror(status)))", isUnsent: true)
    }
  }
}
