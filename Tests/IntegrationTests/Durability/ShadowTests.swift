import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

@Suite("Two streams of the same, one unbroken and one cut again and again")
struct ShadowTests {
  /// Two servers that get the same writes, one transaction at a time: one that runs throughout, and one that is ended
  /// and restarted.
  private struct Pair {
    let calm: ServerProcess
    let troubled: DurableServer
    var epochs: (calm: String, troubled: String) = ("", "")

    init(_ folder: ScratchDirectory) throws {
      let schema = try folder.write(ShadowSchema.yaml, to: "schema.yaml")
      let settings = ["heartbeat.seconds": "1"]
      calm = try ServerProcess(
        "--schema", schema, "--store", "memory", settings: settings.merging(["seed": "none"]) { $1 })
      troubled = try DurableServer(schema: schema, store: folder.file("store"), settings: settings)
      epochs = (try calm.status["epoch"].text ?? "", try troubled.process.status["epoch"].text ?? "")
    }

    /// Writes to one of them. Returns the response, or nil if the server was ended before it came.
    func send(_ write: ShadowTraffic.Write, to client: WireClient) -> WireResponse? {
      var headers: [String: String] = [:]
      headers["Keyway-Writer"] = write.writer
      return try? client.send(write.method, write.path, headers, body: write.body)
    }

    /// Writes to both, and may kill one of them meanwhile. Returns the revision.
    func commit(_ write: ShadowTraffic.Write, killingAfter microseconds: UInt32?) throws -> Int {
      let before = try calm.revision
      let expected = try #require(send(write, to: calm.client))
      let after = try calm.revision
      guard let microseconds else {
        let answer = try #require(send(write, to: troubled.client))
        #expect(answer.status == expected.status, "\(write): \(answer.text), \(expected.text)")
        #expect(try troubled.revision == after)
        return after
      }
      let child = troubled.process.child
      let pid = child.pid
      Thread.detachNewThread {
        usleep(microseconds)
        kill(pid, SIGKILL)
      }
      let answer = send(write, to: troubled.client)
      troubled.port.withLock { $0 = 0 }
      _ = try child.exitStatus()
      try troubled.start()
      if let answer {
        #expect(answer.status == expected.status, "\(write): \(answer.text), \(expected.text)")
        #expect(try troubled.revision == after)
      } else if try troubled.revision == before, after > before {
        // The write was not done, so it is sent again.
        _ = try #require(send(write, to: troubled.client))
      }
      #expect(try troubled.revision == after)
      return after
    }
  }

  /// The number of commits: `KEYWAY_SHADOW_COMMITS` for a longer run.
  private static let commits = ProcessInfo.processInfo.environment["KEYWAY_SHADOW_COMMITS"].flatMap { Int($0) } ?? 60

  @Test("They are told the same, byte for byte, whether connections are cut or servers killed or drained")
  func same() throws {
    let folder = try ScratchDirectory()
    let pair = try Pair(folder)
    var random = SplitMix64(seed: seed)
    var traffic = ShadowTraffic(seed: seed &+ 1)
    var revision = try pair.commit(ShadowTraffic.founding, killingAfter: nil)
    let readers = try readers(pair, count: 16, revision: revision, using: &random)
    for _ in 0..<Self.commits {
      for reader in readers where Int.random(in: 0..<6, using: &random) == 0 { reader.troubled.cut() }
      let trouble = Int.random(in: 0..<12, using: &random)
      if trouble == 0 {
        #expect(try pair.troubled.restart(SIGTERM) == 0)
      } else if trouble == 1 {
        try pair.troubled.restart(SIGKILL)
      }
      let delay = trouble == 2 ? UInt32.random(in: 0...4000, using: &random) : nil
      revision = try pair.commit(traffic.next(), killingAfter: delay)
    }
    for (calm, troubled) in readers {
      let isDone = Deadline().awaits { calm.has(revision) && troubled.has(revision) }
      #expect(isDone, "seed \(seed): \(calm.observation)")
      compare(calm, troubled)
      calm.stop()
      troubled.stop()
    }
    // There was enough to compare, and some streams were interrupted.
    #expect(readers.map(\.calm.blocks.count).reduce(0, +) > Self.commits)
    #expect(readers.contains { $0.troubled.connections > 2 })
  }

  /// Makes pairs of readers of random observations, and waits until all are connected.
  private func readers(
    _ pair: Pair, count: Int, revision: Int, using random: inout SplitMix64
  ) throws -> [(calm: ShadowReader, troubled: ShadowReader)] {
    let calmPort = Locked(pair.calm.port)
    let readers = (0..<count).map { _ in
      let state = random
      let calm = ShadowObservation.random(using: &random, cursor: "\(pair.epochs.calm)-\(revision)")
      random = state
      let troubled = ShadowObservation.random(using: &random, cursor: "\(pair.epochs.troubled)-\(revision)")
      return (
        calm: ShadowReader(calm, port: calmPort, epoch: pair.epochs.calm),
        troubled: ShadowReader(troubled, port: pair.troubled.port, epoch: pair.epochs.troubled)
      )
    }
    for (calm, troubled) in readers {
      // The first id comes with the first heartbeat at the latest.
      let exists = Deadline().awaits { calm.has(revision) && troubled.has(revision) }
      #expect(exists, "seed \(seed): \(calm.observation): \(calm.failure ?? "") \(troubled.failure ?? "")")
    }
    return readers
  }

  private func compare(_ calm: ShadowReader, _ troubled: ShadowReader) {
    let (left, right) = (calm.blocks, troubled.blocks)
    let place =
      zip(left, right).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? min(left.count, right.count)
    let note: Comment =
      """
      seed \(seed), \(calm.observation), event \(place) of \(left.count) and \(right.count):
      \(place < left.count ? left[place] : "none")
      \(place < right.count ? right[place] : "none")
      """
    #expect(left == right, note)
    #expect(calm.connections == 1, "seed \(seed): the unbroken one was broken")
    #expect(calm.failure == nil && troubled.failure == nil, "seed \(seed): \(troubled.failure ?? "")")
  }
}
