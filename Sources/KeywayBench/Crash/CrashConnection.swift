/// One keep-alive connection: a request out, its answer in.
final class CrashConnection: Sendable {
  private static let maximumAnswerBytes = 8 << 20
  private let socket: CrashSocket
  private let port: UInt16

  /// Connects to a port of this machine.
  init(port: UInt16, timeoutSeconds: Int) throws(CrashError) {
    self.port = port
    socket = try CrashSocket(port: port, timeoutSeconds: timeoutSeconds)
  }

  /// Sends a request and gives its answer, whatever it is. After `disconnected` nobody knows whether it was done.
  func exchange(_ request: CrashRequest) throws(CrashError) -> CrashAnswer {
    try socket.send(request.bytes(port: port))
    var received: [UInt8] = []
    while received.count < Self.maximumAnswerBytes {
      let bytes = try socket.receive()
      guard !bytes.isEmpty else { throw .disconnected("closed before the answer") }
      received += bytes
      guard let end = Self.headEnd(received) else { continue }
      guard var answer = CrashAnswer(head: received[..<end]) else { throw .malformed("the answer is no HTTP") }
      if received.count - end >= answer.contentLength {
        answer.body = Array(received[end..<(end + answer.contentLength)])
        return answer
      }
    }
    throw .malformed("the answer is larger than \(Self.maximumAnswerBytes) bytes")
  }

  /// Where the body begins; nil where the head is not there yet.
  static func headEnd(_ bytes: [UInt8]) -> Int? {
    guard bytes.count >= 4 else { return nil }
    return (4...bytes.count).first { bytes[($0 - 4)..<$0].elementsEqual("\r\n\r\n".utf8) }
  }
}
