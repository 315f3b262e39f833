import Testing

@testable import HTTPServer

@Suite struct PendingQueueTests {
  private func event(_ text: String) -> EventBytes { EventBytes(Array(text.utf8)) }

  /// Everything the queue would send, taken `step` bytes at a time.
  private func drained(_ queue: PendingQueue, step: Int = 3) -> String {
    var queue = queue
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: step)
    while !queue.isEmpty {
      let count = buffer.withUnsafeMutableBytes { queue.copy(into: $0) }
      bytes += buffer[..<count]
      queue.consume(count)
    }
    #expect(queue.backlogByteCount == 0)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test func anEventIsOneChunkWithItsSizeInHexadecimal() {
    #expect(
      String(decoding: event("0123456789abcdef0").wholeChunk ?? [], as: UTF8.self) == "11\r\n0123456789abcdef0\r\n")
    #expect(event("abc").count == 3)
    #expect(event("").framedCount == 0)
  }

  @Test func piecesLeaveInOrderWhateverTheStep() {
    var queue = PendingQueue()
    queue.append(event("one"))
    queue.append(event("two"))
    queue.begin(with: Array("head".utf8), framed: true)
    queue.append(EventBytes.terminator)
    for step in 1...40 { #expect(drained(queue, step: step) == "head3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n") }
  }

  @Test func anUnframedQueueSendsPayloadsAlone() {
    var queue = PendingQueue()
    queue.append(event("one"))
    queue.begin(with: Array("head".utf8), framed: false)
    queue.append(event("two"))
    #expect(queue.byteCount == 10)
    #expect(drained(queue) == "headonetwo")
  }

  @Test func droppingKeepsThePartlySentEventWhole() {
    var queue = PendingQueue()
    queue.append(event("one"), alreadySent: 4)
    queue.append(event("two"))
    queue.append(event("three"))
    queue.dropUnsentEvents()
    queue.append(event("bye"))
    #expect(drained(queue) == "ne\r\n3\r\nbye\r\n")
  }

  @Test func droppingKeepsTheHead() {
    var queue = PendingQueue()
    queue.begin(with: Array("head".utf8), framed: true)
    queue.append(event("one"))
    queue.dropUnsentEvents()
    #expect(queue.byteCount == 4)
    #expect(drained(queue) == "head")
  }

  @Test func theBacklogIsWhatWaitsBehindTheFirstPiece() {
    var queue = PendingQueue()
    queue.append(event("first"))
    #expect(queue.backlogByteCount == 0)
    queue.append(event("two"))
    #expect(queue.backlogByteCount == 8)
    queue.consume(4)
    #expect(queue.backlogByteCount == 8)
  }

  @Test func manyPiecesAreForgottenAsTheyLeave() {
    var queue = PendingQueue()
    let numbers = (0..<500).map { "\($0)" }
    for number in numbers { queue.append(event(number)) }
    let expected = numbers.map { "\($0.utf8.count)\r\n\($0)\r\n" }.joined()
    #expect(drained(queue, step: 7) == expected)
  }

  @Test func anEventInPiecesIsSentLikeOneInOnePiece() {
    let pieces = ["one", "", String(repeating: "2", count: 300), "three"].map { Array($0.utf8) }
    let (whole, split) = (EventBytes(Array(pieces.joined())), EventBytes(pieces: pieces))
    #expect(split.count == whole.count && split.framedCount == whole.framedCount && split.payload == whole.payload)
    for isFramed in [true, false] {
      for size in [1, 2, 7, 299, 1_000] {
        var queues = [PendingQueue(), PendingQueue()]
        for (index, event) in [whole, split].enumerated() {
          queues[index].begin(with: Array("head".utf8), framed: isFramed)
          queues[index].append(event)
          queues[index].append(event)
        }
        while !queues[0].isEmpty {
          var sent: [[UInt8]] = []
          for index in queues.indices {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
            defer { buffer.deallocate() }
            let count = queues[index].copy(into: buffer)
            sent.append(Array(buffer[..<count]))
            queues[index].consume(count)
          }
          #expect(sent[0] == sent[1] && !sent[0].isEmpty)
        }
        #expect(queues[1].isEmpty)
      }
    }
  }
}
