/// Reads HTTP/1.1 from a socket: heads, bodies of known length, and bodies in chunks.
package final class WireReader {
  private let socket: WireSocket
  private var buffer: ArraySlice<UInt8> = []

  package init(_ socket: WireSocket) {
    self.socket = socket
  }

  /// The next line without its end.
  package func line(before deadline: Deadline) throws(WireError) -> String {
    while true {
      if let end = buffer.firstIndex(of: 0x0A) {
        var line = buffer[..<end]
        buffer = buffer[(end + 1)...]
        if line.last == 0x0D { line.removeLast() }
        return String(decoding: line, as: UTF8.self)
      }
      try fill(deadline)
    }
  }

  /// So many bytes.
  package func bytes(_ count: Int, before deadline: Deadline) throws(WireError) -> [UInt8] {
    while buffer.count < count { try fill(deadline) }
    defer { buffer = buffer.dropFirst(count) }
    return Array(buffer.prefix(count))
  }

  /// The bytes of the next chunk; nil after the last.
  package func chunk(before deadline: Deadline) throws(WireError) -> [UInt8]? {
    let size = try line(before: deadline)
    guard let count = Int(size, radix: 16) else { throw WireError(.malformed, "chunk size '\(size)'") }
    let content = try bytes(count, before: deadline)
    guard try line(before: deadline).isEmpty else { throw WireError(.malformed, "chunk without end") }
    return count == 0 ? nil : content
  }

  /// A status line and header lines.
  package func head(before deadline: Deadline) throws(WireError) -> WireResponse {
    let status = try line(before: deadline)
    let parts = status.split(separator: " ")
    guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let code = Int(parts[1]) else {
      throw WireError(.malformed, "status line '\(status)'")
    }
    var headers: [(name: String, value: String)] = []
    while true {
      let line = try line(before: deadline)
      if line.isEmpty { break }
      guard let colon = line.firstIndex(of: ":") else { throw WireError(.malformed, "header line '\(line)'") }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      headers.append((String(line[..<colon]), String(value)))
    }
    return WireResponse(status: code, headers: headers)
  }

  /// A whole response; `hasBody` is false for the answer to HEAD.
  package func response(hasBody: Bool, before deadline: Deadline) throws(WireError) -> WireResponse {
    var response = try head(before: deadline)
    while response.status == 100 { response = try head(before: deadline) }
    guard hasBody, response.status != 204, response.status != 304 else { return response }
    if response["Transfer-Encoding"]?.lowercased() == "chunked" {
      while let chunk = try chunk(before: deadline) { response.body += chunk }
    } else if let length = response["Content-Length"].flatMap({ Int($0) }) {
      response.body = try bytes(length, before: deadline)
    } else {
      throw WireError(.malformed, "a response of unknown length")
    }
    return response
  }

  private func fill(_ deadline: Deadline) throws(WireError) {
    let bytes = try socket.receive(before: deadline)
    guard !bytes.isEmpty else { throw WireError(.connectionClosed) }
    buffer = buffer + bytes
  }
}
