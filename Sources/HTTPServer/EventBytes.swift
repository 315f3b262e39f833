/// The bytes of one or more server-sent events, framed once for all the streams they go to.
///
/// A stream over HTTP/1.1 is sent `framed`, the payload as one chunk; over HTTP/1.0 the payload itself.
package final class EventBytes: Sendable {
  let framed: [UInt8]
  let payload: Range<Int>
  /// The position that the events belong to, as in `StreamHub.post(_:position:)`. A stream that misses them is reported
  /// with it; nothing else looks at it.
  package let position: UInt64

  /// Takes the text of whole events, blank lines included. An empty payload sends nothing: an empty chunk would end
  /// the response.
  package init(_ payload: [UInt8], position: UInt64 = 0) {
    self.position = position
    guard !payload.isEmpty else {
      framed = []
      self.payload = 0..<0
      return
    }
    let size = String(payload.count, radix: 16).utf8
    let start = size.count + 2
    framed = [UInt8](unsafeUninitializedCapacity: start + payload.count + 2) { buffer, count in
      count = buffer.initialize(fromContentsOf: size)
      count = buffer[count...].initialize(fromContentsOf: Self.lineEnd)
      count = buffer[count...].initialize(fromContentsOf: payload)
      count = buffer[count...].initialize(fromContentsOf: Self.lineEnd)
    }
    self.payload = start..<(start + payload.count)
  }

  /// The number of bytes of the payload.
  package var count: Int { payload.count }

  /// The text of the events.
  package var text: ArraySlice<UInt8> { framed[payload] }

  /// What goes over the wire.
  func range(framed isFramed: Bool) -> Range<Int> { isFramed ? 0..<framed.count : payload }

  /// The chunk that ends a response.
  static let terminator: [UInt8] = Array("0\r\n\r\n".utf8)

  private static let lineEnd: [UInt8] = [13, 10]
}
