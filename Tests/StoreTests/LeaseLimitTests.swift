import KeyValueModel
import Store
import TestKit
import Testing

@Suite("Limits on leases") struct LeaseLimitTests {
  private static func store(_ limit: Int, perClient: Int) throws -> StoreFixture {
    try StoreFixture {
      $0.leases = limit
      $0.leasesPerClient = perClient
    }
  }

  private static func write(
    _ fixture: StoreFixture, _ operations: [KeyValueModel.Operation], of client: Int
  ) async -> ModelError.Code? {
    await withCheckedContinuation { continuation in
      _ = fixture.store.submit(Transaction(operations), of: client) { outcome, _, _ in
        if case .failure(let error) = outcome {
          continuation.resume(returning: error.code)
        } else {
          continuation.resume(returning: nil)
        }
      }
    }
  }

  /// Returns the refusal under limits so small that nothing is reserved: a client may have its part of what the others
  /// leave.
  private static func refusal(of new: Int, held: Int, total: Int, limit: Int, perClient: Int) -> ModelError.Code? {
    if held + new > perClient { return .tooManyLeasesOfClient }
    if total + new > limit { return .tooManyLeases }
    let left = Double(limit - (total - held))
    return held + new == 1 || Double(held + new) <= (left * Double(perClient) / Double(limit)).rounded(.up)
      ? nil : .tooManyLeases
  }

  @Test("Two clients that make all the leases they may leave some to others")
  func twoClients() async throws {
    let fixture = try Self.store(160, perClient: 140)
    var counts: [Int] = []
    for client in 1...6 {
      var count = 0
      while count < 160 {
        let object = try ref("Account/\(client)-\(count)")
        let outcome = await Self.write(fixture, [.put(object, [:]), .lifetime(object, .seconds(3_600))], of: client)
        guard outcome == nil else { break }
        count += 1
      }
      counts.append(count)
    }
    #expect(counts[0] == 140 && counts.allSatisfy { $0 > 0 }, "\(counts)")
    #expect(fixture.store.leaseCount < 160)
  }

  @Test("A lease is refused exactly if it would exceed a limit, after any others, and changes nothing")
  func random() async throws {
    let (limit, share) = (6, 4)
    let fixture = try Self.store(limit, perClient: share)
    var random = SplitMix64(seed: seed)
    /// The client of each lease: the oracle of this test.
    var owners: [Reference: Int] = [:]
    var present: Set<Reference> = []
    for step in 0..<1_500 {
      let client = Int.random(in: 1...3, using: &random)
      var operations: [KeyValueModel.Operation] = []
      var (after, there) = (owners, present)
      var new = 0
      for number in Set((0..<Int.random(in: 1...3, using: &random)).map { _ in Int.random(in: 0..<12, using: &random) })
      {
        let object = try ref("Account/\(number)")
        switch Int.random(in: 0..<5, using: &random) {
        case 0 where present.contains(object):
          operations.append(.delete(object))
          there.remove(object)
          after[object] = nil
        case 1:
          operations += [.put(object, [:]), .lifetime(object, .unlimited)]
          there.insert(object)
          after[object] = nil
        case 2:
          operations.append(.put(object, [:]))
          there.insert(object)
        default:
          operations += [.put(object, [:]), .lifetime(object, .seconds(3_600))]
          there.insert(object)
          if owners[object] == nil {
            new += 1
            after[object] = client
          }
        }
      }
      let expected: ModelError.Code? =
        new == 0
        ? nil
        : Self.refusal(
          of: new, held: owners.values.count { $0 == client }, total: owners.count, limit: limit, perClient: share)
      let outcome = await Self.write(fixture, operations, of: client)
      #expect(outcome == expected, "seed \(seed), step \(step)")
      if outcome == nil { (owners, present) = (after, there) }
      #expect(fixture.store.leaseCount == owners.count, "seed \(seed), step \(step)")
      #expect(fixture.store.snapshot.state.count == present.count, "seed \(seed), step \(step)")
    }
  }

  @Test("Transactions that are committed together share what is left")
  func batch() async throws {
    let fixture = try Self.store(3, perClient: 3)
    let gate = Gate()
    gate.close(fixture.store)
    async let outcomes = withTaskGroup(of: Bool.self) { group in
      for number in 0..<9 {
        group.addTask {
          guard let object = Reference("Account/\(number)") else { return false }
          return await Self.write(fixture, [.create(object, [:]), .lifetime(object, .seconds(9))], of: number) == nil
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(await Deadline().comes { fixture.store.queuedWrites == 9 })
    gate.open()
    #expect(await outcomes == 3)
    #expect(fixture.store.leaseCount == 3)
  }
}
