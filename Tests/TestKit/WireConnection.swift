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
