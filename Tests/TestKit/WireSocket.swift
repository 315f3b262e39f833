import Glibc

/// A TCP connection with blocking calls, and a deadline on everything that waits.
package final class WireSocket {
  /// The descriptor; -1 once it is closed.
  package private(set) var descriptor: Int32

  /// Connects. A small `receiveBufferBytes` makes a reader that stops reading felt soon.
  package init(_ address: SocketAddress, receiveBufferBytes: Int32? = nil) throws(LoopbackError) {
    descriptor = try address.connect(receiveBufferBytes: receiveBufferBytes)
  }

  /// Connects to a port of this machine.
  package convenience init(port: UInt16, receiveBufferBytes: Int32? = nil) throws(LoopbackError) {
    try self.init(SocketAddress(port: port), receiveBufferBytes: receiveBufferBytes)
  }

  deinit { close() }

  /// Sends everything.
  package func send(_ bytes: [UInt8], before deadline: Deadline = Deadline()) throws(LoopbackError) {
    var sent = 0
    while sent < bytes.count {
      guard descriptor >= 0 else { throw LoopbackError(.connectionClosed) }
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      }
      if count < 0 {
        guard errno == EAGAIN else { throw LoopbackError(call: "send", .connectionReset) }
        try wait(for: Int16(POLLOUT), deadline)
      }
      sent += max(0, count)
    }
  }

  /// Sends a text.
  package func send(_ text: String) throws(LoopbackError) { try send(Array(text.utf8)) }

  /// The next bytes; empty when the other side has closed.
  package func receive(before deadline: Deadline, atMost count: Int = 65_536) throws(LoopbackError) -> [UInt8] {
    try wait(for: Int16(POLLIN), deadline)
    var received = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      received = recv(descriptor, buffer.baseAddress, count, 0)
      initialized = max(0, received)
    }
    guard received >= 0 else { throw LoopbackError(call: "recv", .connectionReset) }
    return bytes
  }

  private func wait(for events: Int16, _ deadline: Deadline) throws(LoopbackError) {
    guard descriptor >= 0 else { throw LoopbackError(.connectionClosed) }
    var entry = pollfd(fd: descriptor, events: events, revents: 0)
    var result: Int32
    repeat { result = poll(&entry, 1, deadline.remainingMilliseconds) } while result < 0 && errno == EINTR
    guard result > 0 else { throw LoopbackError(.timedOut) }
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

/// One keep-alive connection with blocking calls: a request out, its response in. For one thread at a time.
package final class WireConnection {
  private let socket: WireSocket
  private let reader: WireReader
  private let address: SocketAddress
  private let timeoutSeconds: Double

  /// Connects; every response has to come within `timeoutSeconds`.
  package init(_ address: SocketAddress, timeoutSeconds: Double = Deadline.patienceSeconds) throws(LoopbackError) {
    socket = try WireSocket(address)
    reader = WireReader(socket)
    self.address = address
    self.timeoutSeconds = timeoutSeconds
  }

  /// Sends a request and gives its response, whatever its status; it has to come within so many seconds, where they
  /// are given. Where it throws, the request may have been carried out or not.
  package func exchange(
    _ request: WireRequest, within seconds: Double? = nil
  ) throws(LoopbackError) -> WireResponse {
    let deadline = Deadline(seconds: seconds ?? timeoutSeconds)
    try send(request, before: deadline)
    return try reader.response(hasBody: request.method != "HEAD", before: deadline)
  }

  /// Sends a request and comes back before its response, which `response` gives.
  package func send(_ request: WireRequest) throws(LoopbackError) {
    try send(request, before: Deadline(seconds: timeoutSeconds))
  }

  /// The response to the request that was sent last; waits for it.
  package func response() throws(LoopbackError) -> WireResponse {
    try reader.response(hasBody: true, before: Deadline(seconds: timeoutSeconds))
  }

  private func send(_ request: WireRequest, before deadline: Deadline) throws(LoopbackError) {
    try socket.send(Array(request.text(to: address).utf8), before: deadline)
  }

  /// Sends a request that has to succeed; throws where the status is no 2xx.
  @discardableResult
  package func must(_ request: WireRequest) throws(LoopbackError) -> WireResponse {
    let response = try exchange(request)
    guard response.isSuccess else {
      throw LoopbackError(
        .unexpectedStatus(response.status), "\(request.method) \(request.target): \(response.text.prefix(1000))")
    }
    return response
  }
}
