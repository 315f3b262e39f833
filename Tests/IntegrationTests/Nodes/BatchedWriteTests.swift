import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

/// Concurrent writes at a follower, which forwards them together to its leader.
@Suite("Writes that are passed on in batches", .timeLimit(.minutes(60))) struct BatchedWriteTests {
  private struct Pair {
    let leader: NodeProcess
    let follower: NodeProcess

    init(_ directory: ScratchDirectory, _ settings: [String: String] = [:]) throws {
      leader = try NodeProcess("a", in: directory)
      follower = try NodeProcess("b", in: directory, following: leader.url, settings: settings)
      guard follower.awaitReady() else { throw LoopbackError("the follower is not ready") }
    }

    /// Returns the texts of all notes that begin with a word.
    func notes(_ word: String) throws -> [String] {
      var texts: [String] = []
      var target: String? = "/v1/objects/Note?limit=1000"
      while let page = target {
        let fetched = try follower.client.json(page)
        texts += (fetched["objects"].elements ?? []).compactMap { $0["text"].text }
        target = fetched["next"].text
      }
      return texts.filter { $0.hasPrefix(word) }
    }

    /// The number of batches that the leader has answered.
    var batches: Int {
      get throws {
        let lines = try leader.client.send("GET", "/metrics").text.split(separator: "\n")
        return lines.filter { $0.hasPrefix("keyway_requests_total{") && $0.contains("\"/v1/nodes/writes\"") }
          .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }.reduce(0, +)
      }
    }
  }

  /// Clients that each create one note after the other.
  private final class Writers: Sendable {
    let statuses = Locked<[String: Int]>([:])
    private let isFinished = Locked(false)
    private let group = DispatchGroup()

    init(_ count: Int, _ port: UInt16, _ word: String) {
      for writer in 0..<count {
        DispatchQueue(label: "writer \(writer)").async(group: group) { [self] in
          let client = WireClient(port: port)
          var number = 0
          while !isFinished.withLock({ $0 }) {
            let text = "\(word) \(writer) \(number)"
            let answer = try? client.send("POST", "/v1/objects/Note", body: "{\"text\":\"\(text)\"}")
            statuses.withLock { $0[text] = answer?.status ?? 0 }
            number += 1
          }
        }
      }
    }

    var done: Set<String> { statuses.withLock { Set($0.filter { $0.value == 201 }.keys) } }

    func await(_ more: Int) -> Bool {
      let before = done.count
      return Deadline().awaits { self.done.count >= before + more }
    }

    func end() {
      isFinished.withLock { $0 = true }
      group.wait()
    }
  }

  @Test("A leader that is killed in the midst of batches, and comes back, has done each acknowledged write once")
  func killing() throws {
    let directory = try ScratchDirectory()
    let pair = try Pair(directory)
    let writers = Writers(24, pair.follower.port, "killed")
    #expect(writers.await(200))
    #expect(try pair.batches > 0)
    for _ in 0..<3 {
      try pair.leader.kill()
      try pair.leader.start()
      #expect(writers.await(100))
    }
    writers.end()
    let revision = try pair.leader.revision
    #expect(pair.follower.awaitRevision(revision))
    let notes = try pair.notes("killed ")
    #expect(Set(notes).count == notes.count, "no write is done twice")
    #expect(writers.done.subtracting(notes) == [], "no acknowledged write is lost")
    // The other writes got no other status.
    #expect(writers.statuses.withLock { $0.values.allSatisfy { $0 == 201 || $0 == 503 } })
    #expect(Set(notes).subtracting(writers.statuses.withLock { Set($0.keys) }) == [])
    try pair.follower.stop()
    try pair.leader.stop()
    #expect(try pair.leader.verified().contains("all is well"))
    #expect(try pair.follower.verified().contains("all is well"))
  }

  @Test("Of writes that go together each is answered for itself: done, not there, in conflict, malformed or stale")
  func mixed() throws {
    let directory = try ScratchDirectory()
    let pair = try Pair(directory)
    let others = Writers(16, pair.follower.port, "other")
    #expect(others.await(50))
    let kinds: [(method: String, target: String, headers: [String: String], body: String?, status: Int)] = [
      ("PUT", "/v1/objects/Account/1/balance", [:], "5", 200),
      ("PUT", "/v1/objects/Note/none/text", [:], "\"x\"", 404), ("PUT", "/v1/objects/Account/1/balance", [:], "{", 400),
      ("PUT", "/v1/objects/Account/1/balance", ["If-Match": "\"none\""], "5", 412),
      ("PUT", "/v1/objects/Account/1/balance", [:], "\"x\"", 422),
      ("PUT", "/v1/objects/Account/1/none", [:], "5", 404), ("PATCH", "/v1/objects/Person/7", [:], "[]", 422),
    ]
    let (wrong, port) = (Locked<[String]>([]), pair.follower.port)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      let client = WireClient(port: port)
      for round in 0..<30 {
        let kind = kinds[round % kinds.count]
        let answer = try? client.send(kind.method, kind.target, kind.headers, body: kind.body)
        if answer?.status != kind.status {
          wrong.withLock { $0.append("\(kind.method) \(kind.target): \(answer?.status ?? 0) \(answer?.text ?? "")") }
        }
      }
    }
    others.end()
    #expect(wrong.withLock { $0 } == [])
    #expect(others.statuses.withLock { $0.values.allSatisfy { $0 == 201 } })
    #expect(try pair.batches > 0)
  }

  @Test("A client that has many writes under way does not keep another's from being done, nor over the bounds")
  func crowd() throws {
    let directory = try ScratchDirectory()
    let pair = try Pair(directory, ["nodes.forwarding": "64"])
    let crowd = Writers(40, pair.follower.port, "crowd")
    #expect(crowd.await(100))
    let other = WireClient(port: pair.follower.port, from: "127.0.0.2")
    for number in 0..<20 {
      try other.must("POST", "/v1/objects/Note", body: "{\"text\":\"few \(number)\"}")
    }
    crowd.end()
    #expect(try pair.notes("few ").count == 20)
    let statuses = crowd.statuses.withLock { Set($0.values) }
    #expect(statuses.isSubset(of: [201, 503]))
    let notes = try pair.notes("crowd ")
    #expect(Set(notes) == crowd.done && notes.count == crowd.done.count, "what was refused was not done")
  }
}
