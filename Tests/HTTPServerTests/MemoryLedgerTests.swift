import TestKit
import Testing

@testable import HTTPServer

@Suite struct MemoryLedgerTests {
  private let client = ClientAddress.unknown

  @Test func aReservationIsCountedUntilItIsLetGo() throws {
    let ledger = MemoryLedger(limit: 1000, clientLimit: 600)
    var reservation: MemoryReservation? = try ledger.reserve(500, for: client, .responses)
    #expect(ledger.total == 500)
    #expect(ledger.bytes(for: .responses) == 500)
    #expect(ledger.bytes(of: client) == 500)
    #expect(throws: MemoryRefusal.clientShare) { try reservation?.resize(to: 601) }
    #expect(reservation?.byteCount == 500)
    try reservation?.resize(to: 100)
    #expect(ledger.total == 100)
    reservation = nil
    #expect(ledger.total == 0)
    #expect(ledger.bytes(of: client) == 0)
  }

  @Test func allClientsTogetherHaveALimit() throws {
    let ledger = MemoryLedger(limit: 100, clientLimit: 600)
    #expect(throws: MemoryRefusal.total) { try ledger.reserve(101, for: client, .pages) }
    let held = try ledger.reserve(100, for: client, .pages)
    #expect(throws: MemoryRefusal.total) { try ledger.reserve(1, for: client, .pages) }
    ledger.setLimits(50, client: 600)
    try held.resize(to: 60)
    #expect(throws: MemoryRefusal.total) { try held.resize(to: 61) }
  }

  @Test func clientsThatTakeAllTheyGetLeaveMemoryToOthers() throws {
    let ledger = MemoryLedger(limit: 1 << 20, clientLimit: 1 << 19)
    var held: [MemoryReservation] = []
    func fill(_ client: ClientAddress) -> Int {
      while let reservation = try? ledger.reserve(1 << 10, for: client, .requestBodies) { held.append(reservation) }
      return ledger.bytes(of: client)
    }
    let amounts = (1...12).map { fill(ClientAddress(number: $0)) }
    #expect(amounts[0] == 1 << 19 && amounts == amounts.sorted(by: >))
    #expect(amounts.allSatisfy { $0 > 0 } && ledger.total < 1 << 20)
  }

  @Test func theSumIsThatOfWhatIsHeld() throws {
    var random = SplitMix64(seed: seed)
    let ledger = MemoryLedger(limit: 10_000, clientLimit: 10_000)
    var held: [MemoryReservation] = []
    for _ in 0..<2_000 {
      let bytes = Int.random(in: 0...2_000, using: &random)
      let use = MemoryUse.allCases.randomElement(using: &random) ?? .pages
      if Bool.random(using: &random), !held.isEmpty {
        held.remove(at: Int.random(in: held.indices, using: &random))
      } else if let reservation = try? ledger.reserve(bytes, for: client, use) {
        held.append(reservation)
      } else {
        #expect(ledger.total + bytes > 10_000, "seed \(seed)")
      }
      #expect(ledger.total == held.reduce(0) { $0 + $1.byteCount }, "seed \(seed)")
      #expect(ledger.total == MemoryUse.allCases.reduce(0) { $0 + ledger.bytes(for: $1) }, "seed \(seed)")
    }
  }
}
