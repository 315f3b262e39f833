import Support
import TestKit
import Testing

@Suite("Turns of long requests")
struct FairQueueTests {
  private static func fill(_ queue: inout FairQueue<String, Int>, _ jobs: Range<Int>, of client: String) {
    for job in jobs where !queue.enqueue(job, of: client) { Issue.record("\(job) of \(client) was refused") }
  }

  @Test("A client's hundred requests do not delay another's one")
  func turns() {
    var queue = FairQueue<String, Int>(threads: 1, limit: 1000, limitPerClient: 1000)
    Self.fill(&queue, 0..<100, of: "many")
    let first = queue.next()
    #expect(first?.client == "many" && first?.job == 0)
    Self.fill(&queue, 1000..<1001, of: "one")
    queue.finish("many")
    let order = (0..<3).compactMap { _ in
      let next = queue.next()
      if let next { queue.finish(next.client) }
      return next?.job
    }
    #expect(order == [1, 1000, 2])
  }

  @Test(
    "Jobs taken out at once are out, in any number, and the next lines begin empty", arguments: [1, 40, 600])
  func takenOutAtOnce(_ count: Int) {
    var queue = FairQueue<String, Int>(threads: 1, limit: 1000, limitPerClient: 1000)
    for round in 0..<3 {
      Self.fill(&queue, 0..<count, of: "a")
      Self.fill(&queue, 1000..<1003, of: "b")
      #expect(queue.removeWaiting() == Array(0..<count) + [1000, 1001, 1002], "round \(round)")
      #expect(queue.isIdle && queue.waitingCount == 0 && queue.next()?.job == nil)
    }
    Self.fill(&queue, 7..<8, of: "c")
    #expect(queue.next()?.job == 7)
  }

  @Test("A client never has all threads, and no more than half while another waits", arguments: [2, 3, 4, 8])
  func shares(_ threads: Int) {
    var queue = FairQueue<String, Int>(threads: threads, limit: 1000, limitPerClient: 1000)
    Self.fill(&queue, 0..<20, of: "many")
    var running = 0
    while queue.next() != nil { running += 1 }
    #expect(running == threads - 1 && !queue.hasNext)
    Self.fill(&queue, 1000..<1001, of: "one")
    let other = queue.next()
    #expect(other?.client == "one")

    var shared = FairQueue<String, Int>(threads: threads, limit: 1000, limitPerClient: 1000)
    Self.fill(&shared, 0..<20, of: "a")
    Self.fill(&shared, 0..<20, of: "b")
    var counts: [String: Int] = [:]
    while let next = shared.next() { counts[next.client, default: 0] += 1 }
    #expect(counts["a"] == threads / 2 && counts["b"] == threads / 2)
  }

  @Test("One thread serves a single client")
  func oneThread() {
    var queue = FairQueue<String, Int>(threads: 1, limit: 10, limitPerClient: 10)
    Self.fill(&queue, 1..<3, of: "a")
    let (first, none) = (queue.next(), queue.next())
    #expect(first?.job == 1 && none == nil)
    queue.finish("a")
    let second = queue.next()
    #expect(second?.job == 2)
  }

  @Test("A job over its client's share of the queue is refused for that client, one over the whole queue for all")
  func bounds() {
    var queue = FairQueue<String, Int>(threads: 2, limit: 5, limitPerClient: 3)
    let ofA = (0..<4).map { queue.enqueue($0, of: "a") }
    let ofB = (0..<3).map { queue.enqueue($0, of: "b") }
    #expect(ofA == [true, true, true, false] && ofB == [true, true, false])
    let next = queue.next()
    let (ofC, ofD) = (queue.enqueue(9, of: "c"), queue.enqueue(9, of: "d"))
    #expect(next?.client == "a" && ofC && !ofD)
    let rest = queue.removeWaiting()
    #expect(rest.count == 5 && queue.waitingCount == 0 && !queue.hasNext)
    queue.finish("a")
    #expect(queue.isIdle)
  }

  @Test("Jobs of a client that are no longer wanted make room, the others keep their order")
  func unwanted() {
    var queue = FairQueue<String, Int>(threads: 8, limit: 100, limitPerClient: 4)
    Self.fill(&queue, 0..<4, of: "a")
    let removed = queue.removeUnwanted(of: "a", most: 3) { $0 % 2 == 1 }
    #expect(removed == [1] && queue.waitingCount == 3)
    let entered = [4, 5].map { queue.enqueue($0, of: "a") }
    #expect(entered == [true, false])
    var order: [Int] = []
    while let next = queue.next() { order.append(next.job) }
    #expect(order == [0, 2, 3, 4])
    for _ in order { queue.finish("a") }
    Self.fill(&queue, 5..<7, of: "a")
    let rest = queue.removeUnwanted(of: "a", most: 4) { _ in true }
    #expect(rest == [5, 6] && queue.isIdle && !queue.hasNext)
  }

  @Test("With any arrivals and departures, each job is done once, in its client's order, and nothing is left behind")
  func random() {
    var random = SplitMix64(seed: seed)
    var queue = FairQueue<Int, Int>(threads: 3, limit: 40, limitPerClient: 15)
    var running: [Int] = []
    var accepted: [Int: [Int]] = [:]
    var done: [Int: [Int]] = [:]
    for job in 0..<5000 {
      let client = Int.random(in: 0..<6, using: &random)
      if random.chance(55), queue.enqueue(job, of: client) { accepted[client, default: []].append(job) }
      if random.chance(60), let next = queue.next() {
        done[next.client, default: []].append(next.job)
        running.append(next.client)
      }
      #expect(running.count <= 3 && queue.runningCount == running.count, "seed \(seed)")
      #expect(running.isEmpty || running.count { $0 == running[0] } <= 2, "seed \(seed)")
      if random.chance(60), let index = running.indices.randomElement(using: &random) {
        queue.finish(running.remove(at: index))
      }
    }
    for client in running { queue.finish(client) }
    while let next = queue.next() {
      done[next.client, default: []].append(next.job)
      queue.finish(next.client)
    }
    #expect(done == accepted, "seed \(seed)")
    #expect(queue.isIdle && queue.waitingCount == 0 && queue.runningCount == 0)
  }
}
