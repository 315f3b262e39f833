/// A reader of HTTP/1.1 from a socket: heads, bodies of known length, and bodies in chunks.
package final class WireReader {
  /// A longer head is malformed.
  private static let maximumHeadBytes = 1 << 20

  private let socket: WireSocket
  private var buffer: ArraySlice<UInt8> = []

  /// Creates a reader of the bytes that the socket receives from now on.
  package init(_ socket: WireSocket) {
    self.socket = socket
  }

  /// Returns the next bytes up to and including the first `delimiter`.
  private func bytes(through delimiter: String, before deadline: Deadline) throws(LoopbackError) -> ArraySlice<UInt8> {
    let mark = Array(delimiter.utf8)
    var searched = buffer.startIndex
    while true {
      while searched + mark.count <= buffer.endIndex {
        if buffer[searched] == mark[0], buffer[searched...].starts(with: mark) {
          defer { buffer = buffer[(searched + mark.count)...] }
          return buffer[..<(searched + mark.count)]
        }
        searched += 1
      }
      guard buffer.count < Self.maximumHeadBytes else { throw LoopbackError(.malformed, "a head without an end") }
      let offset = searched - buffer.startIndex
      try fill(deadline)
      searched = buffer.startIndex + offset
    }
  }

  /// Returns the next line without its end, which is a line feed with or without a carriage return.
  package func line(before deadline: Deadline) throws(LoopbackError) -> String {
    var line = try bytes(through: "\n", before: deadline).dropLast()
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    return String(decoding: line, as: UTF8.self)
  }

  /// Returns the next `count` bytes.
  package func bytes(_ count: Int, before deadline: Deadline) throws(LoopbackError) -> [UInt8] {
    while buffer.count < count { try fill(deadline) }
    defer { buffer = buffer.dropFirst(count) }
    return Array(buffer.prefix(count))
  }

  /// Returns the bytes of the next chunk; nil after the last.
  package func chunk(before deadline: Deadline) throws(LoopbackError) -> [UInt8]? {
    let size = try line(before: deadline)
    guard let count = Int(size, radix: 16) else { throw LoopbackError(.malformed, "chunk size '\(size)'") }
    let content = try bytes(count, before: deadline)
    guard try bytes(2, before: deadline).elementsEqual("\r\n".utf8) else {
      throw LoopbackError(.malformed, "chunk without end")
    }
    return count == 0 ? nil : content
  }

  /// Reads a response without its body.
  package func head(before deadline: Deadline) throws(LoopbackError) -> WireResponse {
    let head = try bytes(through: "\r\n\r\n", before: deadline)
    guard let response = WireResponse(head: head) else {
      throw LoopbackError(.malformed, "the head '\(String(decoding: head.prefix(400), as: UTF8.self))'")
    }
    return response
  }

  /// Reads the body that follows a head.
  package func body(of head: WireResponse, before deadline: Deadline) throws(LoopbackError) -> [UInt8] {
    if head.isChunked {
      var body: [UInt8] = []
      while let chunk = try chunk(before: deadline) { body += chunk }
      return body
    }
    guard let length = head["Content-Length"].flatMap({ Int($0) }), length >= 0 else {
      throw LoopbackError(.malformed, "a response of unknown length")
    }
    return try bytes(length, before: deadline)
  }

  /// Reads a whole response. `hasBody` is false for the response to HEAD.
  package func response(hasBody: Bool, before deadline: Deadline) throws(LoopbackError) -> WireResponse {
    var response = try head(before: deadline)
    while response.status == 100 { response = try head(before: deadline) }
    guard hasBody, response.status != 204, response.status != 304 else { return response }
    response.body = try body(of: response, before: deadline)
    return response
  }

  private func fill(_ deadline: Deadline) throws(LoopbackError) {
    let bytes = try socket.receive(before: deadline)
    guard !bytes.isEmpty else { throw LoopbackError(.connectionClosed) }
    buffer = buffer.isEmpty ? bytes[...] : buffer + bytes
  }
}
