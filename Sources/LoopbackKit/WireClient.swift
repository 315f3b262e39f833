package import KeyValueModel

/// Talks HTTP to a port of this machine over sockets of its own, one connection for each request.
package struct WireClient {
  package let port: UInt16
  /// What must not go away while this client, or a stream that it opened, is in use.
  private let owner: AnyObject?

  package init(port: UInt16, keepingAlive owner: AnyObject? = nil) {
    self.port = port
    self.owner = owner
  }

  /// Sends a request and reads the whole answer. A body is sent as JSON unless the headers say otherwise.
  @discardableResult
  package func send(
    _ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil,
    before deadline: Deadline = Deadline()
  ) throws(WireError) -> WireResponse {
    let socket = try WireSocket(port: port)
    try socket.send(text(method, target, headers, body))
    return try WireReader(socket).response(hasBody: method != "HEAD", before: deadline)
  }

  /// The JSON of a resource.
  package func json(_ target: String) throws(WireError) -> Value {
    let response = try send("GET", target)
    guard response.status == 200 else { throw WireError(.unexpectedStatus(response.status), response.text) }
    return response.json
  }

  /// A request that has to succeed; gives its answer.
  @discardableResult
  package func must(
    _ method: String, _ target: String, _ headers: [String: String] = [:], body: String? = nil
  ) throws(WireError) -> WireResponse {
    let response = try send(method, target, headers, body: body)
    guard (200..<300).contains(response.status) else {
      throw WireError(.unexpectedStatus(response.status), "\(method) \(target): \(response.text)")
    }
    return response
  }

  /// Opens a stream; throws where the answer is another than 200.
  package func stream(
    _ target: String, _ headers: [String: String] = [:], method: String = "GET", body: String? = nil,
    receiveBufferBytes: Int32? = nil
  ) throws(WireError) -> WireStream {
    let socket = try WireSocket(port: port, receiveBufferBytes: receiveBufferBytes)
    let all = headers.merging(["Accept": "text/event-stream"]) { given, _ in given }
    try socket.send(text(method, target, all, body))
    let reader = WireReader(socket)
    let head = try reader.head(before: Deadline())
    guard head.status == 200 else {
      let length = head["Content-Length"].flatMap { Int($0) } ?? 0
      let body = try reader.bytes(length, before: Deadline())
      throw WireError(.unexpectedStatus(head.status), String(decoding: body, as: UTF8.self))
    }
    return WireStream(socket: socket, reader: reader, head: head, owner: owner)
  }

  /// Sends bytes as they are, and reads the answer; nil where the server closes without one.
  package func raw(
    _ bytes: [UInt8], before deadline: Deadline = Deadline()
  ) throws(WireError) -> WireResponse? {
    let socket = try WireSocket(port: port)
    do {
      try socket.send(bytes)
      return try WireReader(socket).response(hasBody: true, before: deadline)
    } catch {
      if case .timedOut = error.reason { throw error }
      if case .malformed = error.reason { throw error }
      return nil
    }
  }

  private func text(
    _ method: String, _ target: String, _ headers: [String: String], _ body: String?
  ) -> String {
    var lines = ["\(method) \(target) HTTP/1.1"]
    if headers["Host"] == nil { lines.append("Host: 127.0.0.1:\(port)") }
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) { lines.append("\(name): \(value)") }
    if let body {
      if headers["Content-Type"] == nil { lines.append("Content-Type: application/json") }
      lines.append("Content-Length: \(body.utf8.count)")
    }
    return lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")
  }
}
