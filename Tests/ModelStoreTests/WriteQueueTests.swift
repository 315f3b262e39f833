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

  private static func enqueue(_ write: Write, _ queue: inout WriteQueue<Write>) {
    if !queue.enqueue(write, bytes: write.bytes, of: write.client) { Issue.record("a write was refused") }
  }

  @Test("A client that is alone has all that it wants to write at once")
  func alone() {
    var queue = Self.queue()
    for _ in 0..<2 {
      for number in 0..<100 { Self.enqueue(Write(client: 1, number: number, bytes: 2 * Self.share), &queue) }
      let batches = [queue.takeBatch(), queue.takeBatch()]
      #expect(batches.map(\.count) == [100, 0])
    }
  }

  @Test("A client that is alone and writes much has it by batches, so that one who comes finds its turn")
  func aloneAndLarge() {
    var queue = Self.queue()
    for number in 0..<40 { Self.enqueue(Write(client: 1, number: number, bytes: 64 * Self.share), &queue) }
    #expect(queue.takeBatch().map(\.client) == [1, 1])
    Self.enqueue(Write(client: 2, number: 0, bytes: 10), &queue)
    #expect(queue.takeBatch().contains { $0.client == 2 })
  }

  @Test("While others write, a client that has had more than its share misses batches that they are in")
  func company() {
    var queue = Self.queue()
    var others = 0
    var withBoth = 0
    for round in 0..<400 {
      while queue.count < 4 { Self.enqueue(Write(client: 1, number: round, bytes: 16 * Self.share), &queue) }
      Self.enqueue(Write(client: 2, number: round, bytes: 10), &queue)
      let batch = queue.takeBatch()
      others += batch.count { $0.client == 2 }
      if Set(batch.map(\.client)).count == 2 { withBoth += 1 }
      #expect(batch.count { $0.client == 1 } <= 4)
    }
    #expect(others == 400)
    #expect((20...30).contains(withBoth), "\(withBoth) of 400 batches")
  }

  @Test("The store's own writes can wait where clients wrote lately, and clients' writes never")
  func ownWrites() {
    var queue = Self.queue()
    func write(_ client: Int) -> Bool {
      Self.enqueue(Write(client: client, number: 0, bytes: 10), &queue)
      return queue.canWait
    }
    #expect(!write(Store.ownClient), "nobody has written")
    #expect(!write(1))
    while !queue.takeBatch().isEmpty {}
    #expect(write(Store.ownClient))
    #expect(!write(1), "there is what they can go with")
    while !queue.takeBatch().isEmpty {}
    #expect(!write(1))
    _ = queue.takeBatch()
    // For some batches the others' last write was lately.
    var batches = 0
    while write(Store.ownClient), batches < 1_000 {
      _ = queue.takeBatch()
      batches += 1
    }
    #expect(batches > 1 && batches < 1_000)
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
          Self.enqueue(Write(client: client, number: sent[client, default: 0], bytes: bytes), &queue)
          sent[client, default: 0] += 1
        }
        let waited = queue.count
        let batch = queue.takeBatch()
        #expect(batch.isEmpty == (waited == 0), "seed \(seed)")
        for write in batch {
          #expect(write.number == got[write.client, default: 0], "seed \(seed)")
          got[write.client, default: 0] += 1
        }
      }
      while queue.count > 0 { for write in queue.takeBatch() { got[write.client, default: 0] += 1 } }
      #expect(got == sent, "seed \(seed)")
    }
  }
}
