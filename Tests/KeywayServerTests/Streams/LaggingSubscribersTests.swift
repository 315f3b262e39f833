import HTTPServer
import KeyValueModel
import KeyValueObserving
import TestKit
import Testing

@testable import KeywayServer

@Suite("Lagging subscribers of a topic")
struct LaggingSubscribersTests {
  @Test("Each has missed what came since it began to lag, whichever others come and go")
  func random() {
    var random = SplitMix64(seed: seed)
    var members = LaggingSubscribers()
    var expected: [StreamID: Int] = [:]
    for _ in 0..<5_000 {
      let id = StreamID(UInt64.random(in: 1...12, using: &random))
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        members.absorb([])
        for id in expected.keys { expected[id, default: 0] += 1 }
      case 2:
        members.remove(id)
        expected[id] = nil
      default:
        guard expected[id] == nil else { continue }
        members.add(id, missed: PendingChanges(since: DeliveredValues()))
        expected[id] = 0
      }
      #expect(members.segmentCount <= expected.count, "seed \(seed)")
      for id in 1...12 {
        let id = StreamID(UInt64(id))
        #expect(members.missed(by: id)?.commits == expected[id], "seed \(seed)")
      }
    }
  }
}
