package import KeyValueModel

/// An HTTP client of a port of this machine that uses its own sockets, one connection for each request.
package struct WireClient {
  /// The port of the server.
  package let port: UInt16
  private let address: SocketAddress
  /// The object that must live as long as this client, or a stream that it opened.
  private let owner: AnyObject?

  /// Creates a client of the server on this port. The client and its streams retain `owner`. `source` and `destination`
  /// are as in `SocketAddress`.
  package init(
    port: UInt16, from source: String? = nil, to destination: String = "127.0.0.1",
    keepingAlive owner: AnyObject? = nil
  ) {
    self.port = port
    address = SocketAddress(port: port, from: source, to: destination)
    self.owner = owner
  }

  /// Creates a client of the server on a Unix-domain socket.
  package init(path: String, keepingAlive owner: AnyObject? = nil) {
    port = 0
    address = SocketAddress(path: path)
    self.owner = owner
  }

  /// Sends a request and reads the whole response. A body is sent as JSON unless the headers say otherwise.
  @discardableResult
  package func send(
    _ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil,
    before deadline: Deadline = Deadline()
  ) throws(LoopbackError) -> WireResponse {
    let socket = try WireSocket(address)
    try socket.send(WireRequest(method, target, headers, body: body).text(to: address))
    return try WireReader(socket).response(hasBody: method != "HEAD", before: deadline)
  }

  /// Returns the JSON of a resource. Throws if the status is not 200.
  package func json(_ target: String) throws(LoopbackError) -> Value {
    let response = try send("GET", target)
    guard response.status == 200 else { throw LoopbackError(.unexpectedStatus(response.status), response.text) }
    return response.json
  }

  /// Sends a request that must succeed. Throws if the status is not 2xx.
  @discardableResult
  package func must(
    _ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil
  ) throws(LoopbackError) -> WireResponse {
    try WireConnection(address).must(WireRequest(method, target, headers, body: body))
  }

  /// Opens a stream. Throws if the status is not 200. `receiveBufferBytes` is as in `WireSocket`.
  package func stream(
    _ target: String, _ headers: [String: String] = [:], method: String = "GET", body: String? = nil,
    receiveBufferBytes: Int32? = nil
  ) throws(LoopbackError) -> WireStream {
    let all = headers.merging(["Accept": "text/event-stream"]) { given, _ in given }
    let socket = try WireSocket(address, receiveBufferBytes: receiveBufferBytes)
    try socket.send(WireRequest(method, target, all, body: body).text(to: address))
    let reader = WireReader(socket)
    let head = try reader.head(before: Deadline())
    guard head.status == 200 else {
      let body = try reader.body(of: head, before: Deadline())
      throw LoopbackError(.unexpectedStatus(head.status), String(decoding: body, as: UTF8.self))
    }
    return WireStream(socket: socket, reader: reader, head: head, owner: owner)
  }

  /// Sends bytes unchanged and returns the response, or nil if the server closes without one.
  package func raw(
    _ bytes: [UInt8], before deadline: Deadline = Deadline()
  ) throws(LoopbackError) -> WireResponse? {
    let socket = try WireSocket(address)
    do {
      try socket.send(bytes)
      return try WireReader(socket).response(hasBody: true, before: deadline)
    } catch {
      if error.reason == .timedOut || error.reason == .malformed { throw error }
      return nil
    }
  }
}
