import TestKit
import Testing

@testable import Store

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

  @Test("A client whose writes take long has few of them in a batch, owes others the time, and is trusted again")
  func slow() {
    var queue = Self.queue()
    func send(_ count: Int, of client: Int) {
      for number in 0..<count { Self.enqueue(Write(client: client, number: number, bytes: 10), &queue) }
    }
    send(40, of: 1)
    #expect(queue.takeBatch().count == 40, "nothing is known of it yet")
    queue.charge([1: 40 * 20_000])
    send(40, of: 1)
    #expect(queue.takeBatch().count == 2, "50 ms of it, although nobody else writes")
    queue.charge([1: 2 * 20_000])
    // The other clients have the batches to themselves while this one owes.
    send(10, of: 2)
    for _ in 0..<10 {
      #expect(queue.takeBatch().map(\.client) == [2])
      queue.charge([2: 10])
    }
    #expect(queue.slowPatience == 20_000 / 8, "others have written lately, and may go first")
    send(1, of: 2)
    #expect(queue.slowPatience == 0)
    #expect(queue.takeBatch().map(\.client) == [2])
    #expect(queue.takeBatch().map(\.client) == [1], "a debtor has one write where no other has any")
    queue.charge([1: 20_000])
    var batches = 0
    while batches < 1_000 {
      send(40, of: 1)
      let count = queue.takeBatch().count
      queue.charge([1: count])
      if count > 40 { break }
      batches += 1
    }
    #expect((10..<1_000).contains(batches), "\(batches) batches")
  }

  @Test("The usual time of small writes is covered by their bytes: no client owes it")
  func quick() {
    var queue = Self.queue()
    for round in 0..<100 {
      for client in 1...2 { Self.enqueue(Write(client: client, number: round, bytes: 10), &queue) }
      #expect(queue.takeBatch().count == 2)
      queue.charge([1: 10, 2: 12])
    }
  }

  @Test("Time that writes took together is divided by their weights")
  func times() {
    var times = WriterTimes()
    times.add(1_000_000, to: [1], by: [7])
    times.add(10_000_000, to: [1, 2, 2], by: [0, 998, 0])
    #expect(times.microseconds[1] == 1_009 && times.microseconds[2] == 9_990)
    times.add(4_000_000, to: [3, 4], by: [0, 0])
    #expect(times.microseconds[3] == 2_000 && times.microseconds[4] == 2_000)
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
    // For some batches the others count as recent writers.
    var batches = 0
    while write(Store.ownClient), batches < 1_000 {
      _ = queue.takeBatch()
      batches += 1
    }
    #expect(batches > 1 && batches < 1_000)
  }

  @Test("All waiting writes are written, each client's in order, with any clients and debts")
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
