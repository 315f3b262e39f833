import KeywayClient

/// One event stream, read with blocking calls.
final class CrashStream {
  private let socket: CrashSocket
  private var decoder = ChunkDecoder()
  private var parser: EventStreamParser
  private var waiting: ArraySlice<ServerSentEvent> = []

  /// Opens a stream; where the answer is another than 200, it is given instead.
  static func open(
    _ request: CrashRequest, port: UInt16, timeoutSeconds: Int
  ) throws(CrashError) -> (stream: CrashStream?, answer: CrashAnswer) {
    let socket = try CrashSocket(port: port, timeoutSeconds: timeoutSeconds)
    try socket.send(request.bytes(port: port))
    var received: [UInt8] = []
    while received.count < 1 << 20 {
      let bytes = try socket.receive()
      guard !bytes.isEmpty else { throw .disconnected("closed before the answer") }
      received += bytes
      guard let end = CrashConnection.headEnd(received) else { continue }
      guard var answer = CrashAnswer(head: received[..<end]) else { throw .malformed("the answer is no HTTP") }
      guard answer.status == 200 else {
        answer.body = Array(received[end...])
        return (nil, answer)
      }
      let stream = CrashStream(socket, lastEventID: request.lastEventID ?? "")
      try stream.take(Array(received[end...]))
      return (stream, answer)
    }
    throw .malformed("the head of the answer does not end")
  }

  private init(_ socket: CrashSocket, lastEventID: String) {
    self.socket = socket
    parser = EventStreamParser(lastEventID: lastEventID)
  }

  /// The next event; nil at the end of the response.
  func next() throws(CrashError) -> ServerSentEvent? {
    while true {
      if let event = waiting.popFirst() { return event }
      if decoder.isAtEnd { return nil }
      let bytes = try socket.receive()
      guard !bytes.isEmpty else { throw .disconnected("the stream was cut") }
      try take(bytes)
    }
  }

  private func take(_ bytes: [UInt8]) throws(CrashError) {
    var body: [UInt8] = []
    let isChunked = bytes.withUnsafeBufferPointer { decoder.decode($0) { body += $0 } }
    guard isChunked else { throw .malformed("the stream is not chunked") }
    do {
      waiting += try parser.parse(body)
    } catch {
      throw .malformed("\(error)")
    }
  }
}
