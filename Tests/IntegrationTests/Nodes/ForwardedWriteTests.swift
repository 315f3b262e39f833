import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

/// Writes that a follower forwards, while the connection to its leader breaks in the middle of one.
@Suite("Forwarded writes", .timeLimit(.minutes(60))) struct ForwardedWriteTests {
  private struct Pair {
    let leader: NodeProcess
    let follower: NodeProcess
    let link: FaultyProxy

    init(_ directory: ScratchDirectory) throws {
      leader = try NodeProcess("a", in: directory)
      link = try FaultyProxy(to: leader.port, answerMark: "HTTP/1.1 ")
      follower = try NodeProcess("b", in: directory, following: "http://127.0.0.1:\(link.port)")
      guard follower.awaitReady() else { throw LoopbackError("the follower is not ready") }
    }

    /// Returns the texts of all notes.
    func notes() throws -> [String] {
      let fetched = try follower.client.json("/v1/objects/Note?limit=1000")
      return (fetched["objects"].elements ?? []).compactMap { $0["text"].text }.sorted()
    }
  }

  @Test("A write whose request or answer is lost is done once, and answered as if nothing had been lost")
  func losses() throws {
    let directory = try ScratchDirectory()
    let pair = try Pair(directory)
    let before = try pair.leader.revision
    var expected = try pair.notes()
    for (number, loss) in [FaultyProxy.Loss.answer, .request, .answer, .answer].enumerated() {
      let text = "lost-\(number)-"
      let hasLost = Locked(false)
      pair.link.lose(loss, of: text) { hasLost.withLock { $0 = true } }
      let made = try pair.follower.client.send("POST", "/v1/objects/Note", body: "{\"text\":\"\(text)\"}")
      #expect(made.status == 201 && made.text.contains(text) && made["Location"] != nil, "\(loss): \(made.text)")
      #expect(hasLost.withLock { $0 })
      expected.append(text)
    }
    #expect(try pair.notes() == expected.sorted())
    #expect(try pair.leader.revision == before + 4 && pair.follower.revision == before + 4)
    // Nor is a condition evaluated again that the write itself has made false.
    let target = "/v1/objects/Account/1/balance"
    let tag = try #require(pair.follower.client.send("GET", target)["ETag"])
    pair.link.lose(.answer, of: "balance")
    let conditional = try pair.follower.client.send("PUT", target, ["If-Match": tag], body: "4711")
    #expect(conditional.status == 200 && conditional["ETag"] != nil && conditional["ETag"] != tag)
  }

  @Test("A leader that is killed after it has done a write, and comes back, says so: the write is done once")
  func restarts() throws {
    let directory = try ScratchDirectory()
    let pair = try Pair(directory)
    let expected = try (pair.notes() + ["survives"]).sorted()
    let (lost, restarted) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    // The follower notices the loss when the leader is back.
    pair.link.lose(.answer, of: "survives") {
      lost.signal()
      restarted.wait()
    }
    let answer = Locked<WireResponse?>(nil)
    let (group, port) = (DispatchGroup(), pair.follower.port)
    DispatchQueue.global().async(group: group) {
      let made = try? WireClient(port: port).send("POST", "/v1/objects/Note", body: "{\"text\":\"survives\"}")
      answer.withLock { $0 = made }
    }
    lost.wait()
    try pair.leader.kill()
    try pair.leader.start()
    restarted.signal()
    group.wait()
    let made = try #require(answer.withLock { $0 })
    #expect(made.status == 201, "\(made.text)")
    #expect(try pair.notes() == expected)
    try pair.follower.stop()
    try pair.leader.stop()
    #expect(try pair.leader.verified().contains("all is well"))
    #expect(try pair.follower.verified().contains("all is well"))
  }
}
