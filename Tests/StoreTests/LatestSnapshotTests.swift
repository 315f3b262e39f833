import Dispatch
import KeyValueModel
import Testing

@testable import Store

@Suite("The state that readers find") struct LatestSnapshotTests {
  private static func snapshot(_ revision: Revision) throws -> Snapshot {
    Snapshot(state: Model(schema: try Schema(yaml: accounts)).state, revision: revision, oldestResumable: 0)
  }

  @Test("It is the last one that was shown, with its revision")
  func last() throws {
    let latest = LatestSnapshot(try Self.snapshot(3))
    #expect(latest.revision == 3 && latest.snapshot.revision == 3)
    latest.show(try Self.snapshot(9))
    #expect(latest.revision == 9 && latest.snapshot.revision == 9)
  }

  @Test("Who has seen a state finds its revision or a later one, while others are shown")
  func order() throws {
    let state = try Self.snapshot(0).state
    let snapshots = (0..<2_000).map { Snapshot(state: state, revision: Revision($0), oldestResumable: 0) }
    let latest = LatestSnapshot(snapshots[0])
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      guard thread > 0 else { return snapshots.forEach(latest.show) }
      var seen: Revision = 0
      while seen + 1 < snapshots.count {
        let revision = latest.snapshot.revision
        let found = latest.revision
        guard found >= revision, revision >= seen else {
          Issue.record("\(seen), then \(revision), then \(found)")
          return
        }
        seen = found
      }
    }
  }
}
