import Glibc

/// A TCP connection with blocking calls, all of which have deadlines.
package final class WireSocket {
  /// The descriptor; -1 once it is closed.
  package private(set) var descriptor: Int32

  /// Connects. With a small `receiveBufferBytes`, the server soon notices a reader that stops reading.
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

  /// Returns the next bytes; empty once the other side has closed.
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

  /// Closes normally.
  package func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  /// Closes with a reset, like a machine that lost the connection's state.
  package func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close()
  }
}

/// A keep-alive connection with blocking calls: a request out, its response in. For one thread at a time.
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

  /// Sends a request and returns its response, whatever its status. The response has to come within `seconds`, by
  /// default the connection's timeout. After an error, the request may or may not have been carried out.
  package func exchange(
    _ request: WireRequest, within seconds: Double? = nil
  ) throws(LoopbackError) -> WireResponse {
    let deadline = Deadline(seconds: seconds ?? timeoutSeconds)
    try send(request, before: deadline)
    return try reader.response(hasBody: request.method != "HEAD", before: deadline)
  }

  /// Sends a request without waiting for its response, which `response` returns.
  package func send(_ request: WireRequest) throws(LoopbackError) {
    try send(request, before: Deadline(seconds: timeoutSeconds))
  }

  /// Waits for the response to the last request, and returns it.
  package func response() throws(LoopbackError) -> WireResponse {
    try reader.response(hasBody: true, before: Deadline(seconds: timeoutSeconds))
  }

  private func send(_ request: WireRequest, before deadline: Deadline) throws(LoopbackError) {
    try socket.send(Array(request.text(to: address).utf8), before: deadline)
  }

  /// Sends a request that must succeed. Throws if the status is not 2xx.
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
