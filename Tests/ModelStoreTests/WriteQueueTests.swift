import Seeding
import Testing

@testable import ModelStore

@Suite("Turns of writes")
struct WriteQueueTests {
  private struct Write {
    let client: Int
    let number: Int
    let bytes: Int
  }

  private static let share = 1_024

  private static func queue() -> WriteQueue<Write> {
    var limits = StoreLimits()
    limits.batchBytes = share * 128
    return WriteQueue(limits)
  }

  /// The next batch, as the writer makes it.
  private static func batch(_ queue: inout WriteQueue<Write>, limit: Int = 128 * share) -> [Write] {
    queue.beginBatch()
    var (batch, bytes): ([Write], Int) = ([], 0)
    while bytes < limit, let (write, client) = queue.next() {
      queue.count(write.bytes, of: client)
      bytes += write.bytes
      batch.append(write)
    }
    return batch
  }

  @Test("A client that is alone fills batches")
  func alone() {
    var queue = Self.queue()
    for number in 0..<100 { _ = queue.enqueue(Write(client: 1, number: number, bytes: 2 * Self.share), of: 1) }
    let batches = [Self.batch(&queue), Self.batch(&queue)]
    #expect(batches.map(\.count) == [64, 36])
  }

  @Test("While others write, a client that has had more than its share misses batches that they are in")
  func company() {
    var queue = Self.queue()
    var others = 0
    var withBoth = 0
    for round in 0..<400 {
      while queue.count < 4 { _ = queue.enqueue(Write(client: 1, number: round, bytes: 16 * Self.share), of: 1) }
      _ = queue.enqueue(Write(client: 2, number: round, bytes: 10), of: 2)
      let batch = Self.batch(&queue)
      others += batch.count { $0.client == 2 }
      if Set(batch.map(\.client)).count == 2 { withBoth += 1 }
      #expect(batch.count { $0.client == 1 } <= 4)
    }
    #expect(others == 400)
    #expect((20...30).contains(withBoth), "\(withBoth) of 400 batches")
  }

  @Test("What waits is written, each client's in its order, whoever comes and whatever it owes")
  func order() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      var queue = Self.queue()
      var sent: [Int: Int] = [:]
      var got: [Int: Int] = [:]
      for _ in 0..<100 {
        for _ in 0..<Int.random(in: 0..<5, using: &random) {
          let client = Int.random(in: 0..<4, using: &random)
          let bytes = random.chance(20) ? 100 * Self.share : Int.random(in: 0..<2 * Self.share, using: &random)
          _ = queue.enqueue(Write(client: client, number: sent[client, default: 0], bytes: bytes), of: client)
          sent[client, default: 0] += 1
        }
        let waited = queue.count
        let batch = Self.batch(&queue)
        #expect(batch.isEmpty == (waited == 0), "seed \(seed)")
        for write in batch {
          #expect(write.number == got[write.client, default: 0], "seed \(seed)")
          got[write.client, default: 0] += 1
        }
      }
      while queue.count > 0 { for write in Self.batch(&queue) { got[write.client, default: 0] += 1 } }
      #expect(got == sent, "seed \(seed)")
    }
  }
}
