import Testing

@testable import KeywayServer

@Suite("The silence of nodes") struct NodeSilencesTests {
  @Test("A node is gone after so long without a sign; one that is heard begins anew, and who slept knows of no silence")
  func silence() {
    var silences = NodeSilences()
    func gone(_ nodes: Set<UInt64>, _ present: Set<UInt64> = [], at now: UInt64) -> Set<UInt64> {
      silences.gone(among: nodes, present: present, at: now, after: 2_000)
    }
    #expect(gone([1, 2], [2], at: 10_000) == [])
    #expect(gone([1, 2], [2], at: 11_000) == [])
    #expect(gone([1, 2], at: 12_000) == [1])
    #expect(gone([1, 2], [1], at: 13_000) == [])
    #expect(gone([1, 2], at: 13_999) == [])
    #expect(gone([1, 2], at: 14_000) == [2])
    // Asleep, it has heard none of those that may have spoken.
    let woken = 14_001 + NodeSilences.pause
    #expect(gone([1, 2], at: woken) == [])
    #expect(gone([1, 2], at: woken + 2_000) == [1, 2])
    // Of what is not asked for nothing is remembered.
    #expect(gone([2], at: woken + 2_001) == [2])
    #expect(gone([1], at: woken + 2_002) == [])
  }

  @Test("Without a grace a node is gone that is not there now")
  func none() {
    var silences = NodeSilences()
    #expect(silences.gone(among: [1, 2], present: [1, 3], at: 5, after: 0) == [2])
  }
}
