import Glibc

/// A blocking TCP connection to a port of this machine, with a deadline on everything that waits.
package final class WireSocket {
  package private(set) var descriptor: Int32

  /// Connects. A small `receiveBufferBytes` makes a reader that stops reading felt soon.
  package init(port: UInt16, receiveBufferBytes: Int32? = nil) throws(WireError) {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw WireError(.connectionRefused, "socket: \(errno)") }
    if var bytes = receiveBufferBytes {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
    }
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      Glibc.close(descriptor)
      descriptor = -1
      throw WireError(.connectionRefused, "port \(port): errno \(errno)")
    }
  }

  deinit { close() }

  /// Sends everything.
  package func send(_ bytes: [UInt8], before deadline: Deadline = Deadline()) throws(WireError) {
    var sent = 0
    while sent < bytes.count {
      try wait(for: Int16(POLLOUT), deadline)
      let count = bytes.withUnsafeBytes {
        Glibc.send(
          descriptor, $0.baseAddress?.advanced(by: sent), bytes.count - sent,
          Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      }
      if count < 0, errno != EAGAIN { throw WireError(.connectionReset, "send: errno \(errno)") }
      sent += max(0, count)
    }
  }

  /// Sends a text.
  package func send(_ text: String) throws(WireError) { try send(Array(text.utf8)) }

  /// The next bytes; empty when the other side has closed.
  package func receive(before deadline: Deadline, atMost count: Int = 65_536) throws(WireError) -> [UInt8] {
    try wait(for: Int16(POLLIN), deadline)
    var received = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      received = recv(descriptor, buffer.baseAddress, count, 0)
      initialized = max(0, received)
    }
    guard received >= 0 else { throw WireError(.connectionReset, "recv: errno \(errno)") }
    return bytes
  }

  private func wait(for events: Int16, _ deadline: Deadline) throws(WireError) {
    guard descriptor >= 0 else { throw WireError(.connectionClosed) }
    var entry = pollfd(fd: descriptor, events: events, revents: 0)
    var result = poll(&entry, 1, deadline.remainingMilliseconds)
    while result < 0, errno == EINTR { result = poll(&entry, 1, deadline.remainingMilliseconds) }
    guard result > 0 else { throw WireError(.timedOut) }
  }

  /// Closes in the ordinary way.
  package func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  /// Closes with a reset, as a machine does that forgot the connection.
  package func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close()
  }
}
