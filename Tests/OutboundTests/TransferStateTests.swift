import TestKit
import Testing

@testable import Outbound

@Suite("The state of an outbound transfer") struct TransferStateTests {
  private static let head = OutboundResponse(status: 200, fields: [])

  @Test("In pieces of any size, the reader gets all bytes once, in order, and no more are buffered than allowed")
  func pieces() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<500 {
      let limit = Int.random(in: 1...40, using: &random)
      var state = TransferState(bufferBytes: limit, isRepeatable: false)
      _ = state.beginSending()
      state.receive(Self.head)
      var (sent, read): ([UInt8], [UInt8]) = ([], [])
      var (waiting, isPaused, hasEnded) = (0, false, false)
      for _ in 0..<60 {
        if Bool.random(using: &random) {
          // libcurl sends nothing while it is paused; the same piece comes when it goes on.
          guard !isPaused, !hasEnded else { continue }
          let piece = (0..<Int.random(in: 1...16, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random)
          }
          switch piece.withUnsafeBytes({ state.receive($0) }) {
          case .taken:
            sent += piece
            waiting += piece.count
            #expect(waiting <= max(limit, piece.count), "seed \(seed)")
          case .full:
            isPaused = true
            #expect(waiting > 0 && waiting + piece.count > limit, "seed \(seed)")
          case .refused: Issue.record("seed \(seed): nothing has ended")
          }
          if !isPaused, Int.random(in: 0..<20, using: &random) == 0 {
            state.complete()
            hasEnded = true
          }
        } else {
          switch state.next() {
          case .content(let bytes, let resumes):
            #expect(resumes == isPaused && !bytes.isEmpty, "seed \(seed)")
            read += bytes
            (waiting, isPaused) = (0, false)
          case .end: #expect(hasEnded && waiting == 0, "seed \(seed)")
          case .nothing: #expect(!hasEnded && waiting == 0, "seed \(seed)")
          case .fault(let fault): Issue.record("seed \(seed): \(fault)")
          }
        }
        #expect(state.isFinished == (hasEnded && waiting == 0))
      }
      if case .content(let bytes, _) = state.next() { read += bytes }
      #expect(read == sent, "seed \(seed)")
    }
  }

  @Test("A request that may have been received is sent once, unless it changes nothing")
  func repetition() {
    for isRepeatable in [true, false] {
      var state = TransferState(bufferBytes: 1, isRepeatable: isRepeatable)
      #expect(!state.isSent)
      let first = state.beginSending()
      #expect(first && state.isSent)
      let second = state.beginSending()
      #expect(second == isRepeatable)
      #expect(state.hasEnded != isRepeatable)
    }
  }

  @Test("The first end counts: after it nothing is taken, and what had come is still read")
  func ends() {
    var state = TransferState(bufferBytes: 10, isRepeatable: false)
    _ = state.beginSending()
    state.receive(Self.head)
    _ = [UInt8](repeating: 1, count: 3).withUnsafeBytes { state.receive($0) }
    state.fail(OutboundFault(.interrupted, "first", isUnsent: false))
    state.fail(OutboundFault(.timeout, "second", isUnsent: false))
    state.complete()
    let late = [UInt8](repeating: 2, count: 3).withUnsafeBytes { state.receive($0) }
    let again = state.beginSending()
    guard case .refused = late, !again else {
      Issue.record("something was taken after the end")
      return
    }
    guard case .content([1, 1, 1], resumes: false) = state.next() else {
      Issue.record("what came before the end is lost")
      return
    }
    guard case .fault(let fault) = state.next() else {
      Issue.record("the fault is lost")
      return
    }
    #expect(fault.reason == "first" && state.isFinished)
  }
}
