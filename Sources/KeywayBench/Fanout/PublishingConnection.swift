import Glibc

/// One keep-alive connection with blocking calls: a request out, its answer in.
struct PublishingConnection: ~Copyable {
  private static let maximumAnswerBytes = 256 << 10
  private let descriptor: Int32

  /// Connects; no call waits longer than `timeoutSeconds`.
  init(_ address: SocketAddress, timeoutSeconds: Int) throws(FanoutError) {
    descriptor = try address.connect(isBlocking: true)
    var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
  }

  deinit { close(descriptor) }

  /// Sends a request and gives the body of its answer, which has to be a 2xx.
  @discardableResult
  func exchange(_ request: [UInt8]) throws(FanoutError) -> ArraySlice<UInt8> {
    var sent = 0
    while sent < request.count {
      let count = request[sent...].withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw FanoutError(call: "publish") }
      sent += count
    }
    return try readAnswer()
  }

  private func readAnswer() throws(FanoutError) -> ArraySlice<UInt8> {
    var answer: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 16 << 10)
    while answer.count < Self.maximumAnswerBytes {
      let count = piece.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
      guard count > 0 else {
        throw count == 0 ? FanoutError("the server closed the publisher's connection") : FanoutError(call: "publish")
      }
      answer += piece[..<count]
      guard let end = Self.headEnd(answer) else { continue }
      guard let head = ResponseHead(answer[..<end]) else { throw FanoutError("the answer to a publication is no HTTP") }
      guard (200..<300).contains(head.status) else {
        throw FanoutError("a publication was answered: \(String(decoding: answer, as: UTF8.self))")
      }
      guard !head.isChunked else { throw FanoutError("the answer to a publication is chunked") }
      if answer.count - end >= head.contentLength ?? 0 { return answer[end...] }
    }
    throw FanoutError("the answer to a publication is larger than \(Self.maximumAnswerBytes) bytes")
  }

  private static func headEnd(_ bytes: [UInt8]) -> Int? {
    guard bytes.count >= 4 else { return nil }
    return (4...bytes.count).first { bytes[($0 - 4)..<$0].elementsEqual("\r\n\r\n".utf8) }
  }
}
