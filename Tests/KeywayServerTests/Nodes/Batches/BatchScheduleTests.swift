import HTTPServer
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

/// The composition and the times of batches.
@Suite("When writes go to another node, and with which") struct BatchScheduleTests {
  private static let patience = BatchSchedule<Int>.patience

  private static func schedule(jobs: Int = 4, bytes: Int = 100, connections: Int = 4) -> BatchSchedule<Int> {
    BatchSchedule(
      BatchSchedule.Limits(jobs: jobs, bytes: bytes, connections: connections, waiting: 50, waitingPerClient: 30))
  }

  private static func client(_ number: Int) -> ClientAddress { ClientAddress(number: UInt8(number)) }

  private static func fill(
    _ schedule: inout BatchSchedule<Int>, _ jobs: Range<Int>, bytes: Int = 1, of number: Int = 1
  ) {
    for job in jobs where !schedule.enqueue(job, bytes: bytes, of: client(number)) { Issue.record("\(job) is refused") }
  }

  /// Returns the batch to send at a time; nil for none.
  private static func batch(_ schedule: inout BatchSchedule<Int>, at now: UInt64) -> BatchSchedule<Int>.Batch? {
    if case .send(let batch) = schedule.next(at: now) { batch } else { nil }
  }

  @Test("One that waits goes at once; while two batches are under way the next gathers, up to its limits")
  func gathering() throws {
    var schedule = Self.schedule()
    func add(_ jobs: Range<Int>, bytes: Int = 1) {
      Self.fill(&schedule, jobs, bytes: bytes)
    }
    #expect(schedule.begins(at: 0) == nil)
    add(0..<1)
    let first = try #require(Self.batch(&schedule, at: 0))
    add(1..<2)
    let second = try #require(Self.batch(&schedule, at: 1))
    #expect(first.jobs.map(\.job) == [0] && second.jobs.map(\.job) == [1])
    add(2..<8)
    #expect(schedule.begins(at: 2) == Self.patience)
    #expect(Self.batch(&schedule, at: 2) == nil)
    schedule.finish(first)
    let third = try #require(Self.batch(&schedule, at: 3))
    #expect(third.jobs.map(\.job) == [2, 3, 4, 5])
    schedule.finish(second)
    schedule.finish(third)
    add(8..<10, bytes: 60)
    let fourth = try #require(Self.batch(&schedule, at: 4))
    #expect(fourth.jobs.map(\.job) == [6, 7, 8])
    // A write larger than a batch is sent nevertheless.
    add(10..<11, bytes: 101)
    let fifth = try #require(Self.batch(&schedule, at: 4))
    #expect(fifth.jobs.map(\.job) == [9])
    schedule.finish(fifth)
    let sixth = try #require(Self.batch(&schedule, at: 4))
    #expect(sixth.jobs.map(\.job) == [10])
  }

  @Test("A batch that is held up holds up no other, within the number of connections")
  func stalls() throws {
    var schedule = Self.schedule(connections: 3)
    Self.fill(&schedule, 0..<4, bytes: 60)
    let first = try #require(Self.batch(&schedule, at: 0))
    #expect(Self.batch(&schedule, at: 5) != nil)
    #expect(Self.batch(&schedule, at: Self.patience - 1) == nil)
    #expect(schedule.begins(at: Self.patience - 1) == Self.patience)
    #expect(Self.batch(&schedule, at: Self.patience) != nil)
    #expect(schedule.begins(at: 10 * Self.patience) == nil && Self.batch(&schedule, at: 10 * Self.patience) == nil)
    schedule.finish(first)
    #expect(Self.batch(&schedule, at: 10 * Self.patience) != nil)
  }

  @Test("A client with many writes and one with few take turns in each batch")
  func turns() throws {
    var schedule = Self.schedule(connections: 1)
    Self.fill(&schedule, 0..<20)
    Self.fill(&schedule, 100..<102, of: 2)
    let first = try #require(Self.batch(&schedule, at: 0))
    #expect(Set(first.jobs.map(\.job)) == [0, 1, 100, 101])
  }

  @Test("In any order of events, each client's writes are sent once and in order, within all limits")
  func anything() {
    var random = SplitMix64(seed: seed)
    for _ in 0..<50 {
      let connections = Int.random(in: 1...5, using: &random)
      var schedule = Self.schedule(jobs: Int.random(in: 1...8, using: &random), connections: connections)
      var (sent, taken, refused): ([Int: [Int]], [Int: [Int]], Int) = ([:], [:], 0)
      var underWay: [BatchSchedule<Int>.Batch] = []
      var now: UInt64 = 0
      func step() {
        guard let batch = Self.batch(&schedule, at: now) else { return }
        underWay.append(batch)
        for job in batch.jobs { sent[job.job / 10_000, default: []].append(job.job) }
        #expect(underWay.count <= connections, "seed \(seed)")
      }
      for number in 0..<600 {
        now += UInt64.random(in: 0...Self.patience / 2, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0, 1:
          let client = Int.random(in: 1...3, using: &random)
          let job = client * 10_000 + number
          let bytes = Int.random(in: 1...120, using: &random)
          if schedule.enqueue(job, bytes: bytes, of: Self.client(client)) {
            taken[client, default: []].append(job)
          } else {
            refused += 1
            #expect(schedule.waitingCount >= 30, "seed \(seed)")
          }
        case 2: step()
        default:
          if let index = underWay.indices.randomElement(using: &random) { schedule.finish(underWay.remove(at: index)) }
        }
        #expect(schedule.batchCount == underWay.count)
        #expect(schedule.runningCount == underWay.reduce(0) { $0 + $1.jobs.count }, "seed \(seed)")
      }
      while schedule.waitingCount > 0 {
        for batch in underWay { schedule.finish(batch) }
        underWay = []
        step()
      }
      #expect(sent == taken, "seed \(seed)")
    }
  }
}
