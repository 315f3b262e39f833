import Support
import TestKit
import Testing

@Suite("Shares of clients")
struct FairSharesTests {
  /// The same rule in fractions: the amounts that clients hold decide whether one of them may have more.
  private struct Oracle {
    let total: Int
    let perClient: Int
    var held: [Int: Int] = [:]

    func refusal(of amount: Int, for client: Int) -> ShareLimit.Refusal? {
      let own = held[client] ?? 0
      let all = held.values.reduce(0, +)
      guard own + amount <= perClient else { return .perClient }
      guard all + amount <= total else { return .total }
      let others = Double(all - own)
      let unreserved = Double(total - min(total / 8, max(0, total - perClient)))
      // Multiplied before it is divided: a quotient of whole numbers that is whole is exact.
      let large = (min(Double(perClient), unreserved) * max(0, unreserved - others) / unreserved).rounded(.up)
      let small = max(1, ((Double(total) - others) / 8).rounded(.down))
      return Double(own + amount) <= max(large, small) ? nil : .total
    }
  }

  @Test("After any takes and returns each client's share follows the rule, and the sums are right", arguments: 0..<20)
  func random(_ round: UInt64) {
    var random = SplitMix64(seed: seed, part: round)
    let total = [1, 2, 7, 8, 16, 100, 1_024].randomElement(using: &random) ?? 100
    let perClient = Int.random(in: 1...total + 4, using: &random)
    var shares = FairShares<Int>(ShareLimit(total: total, perClient: perClient))
    var oracle = Oracle(total: total, perClient: perClient)
    for step in 0..<2_000 {
      let client = Int.random(in: 0..<5, using: &random)
      let amount = random.chance(70) ? 1 : Int.random(in: 1...max(1, total / 6), using: &random)
      if random.chance(60) {
        let expected = oracle.refusal(of: amount, for: client)
        #expect(shares.refusal(of: amount, for: client) == expected, "seed \(seed), round \(round), step \(step)")
        #expect(shares.take(amount, for: client) == expected, "seed \(seed), round \(round), step \(step)")
        if expected == nil { oracle.held[client, default: 0] += amount }
      } else {
        shares.release(amount, of: client)
        oracle.held[client] = max(0, (oracle.held[client] ?? 0) - amount)
      }
      #expect(shares.held(by: client) == oracle.held[client] ?? 0)
      #expect(shares.total == oracle.held.values.reduce(0, +) && shares.total <= total)
      #expect(shares.clientCount == oracle.held.values.count { $0 > 0 })
    }
  }

  /// Takes one after the other for a client until it is refused. Returns the number that it holds.
  private static func fill(_ shares: inout FairShares<Int>, _ client: Int) -> Int {
    while shares.take(1, for: client) == nil {}
    return shares.held(by: client)
  }

  @Test("A client that is alone has its own limit, which is the reason that it is given for being refused")
  func alone() {
    for (total, perClient) in [
      (12_000, 10_500), (20_000, 17_500), (100_000, 50_000), (128, 32), (4, 2), (3, 3), (800, 800),
    ] {
      var shares = FairShares<Int>(ShareLimit(total: total, perClient: perClient))
      #expect(Self.fill(&shares, 1) == perClient)
      #expect(shares.refusal(of: 1, for: 1) == .perClient)
      shares.release(perClient, of: 1)
      #expect(shares.clientCount == 0 && shares.total == 0)
    }
  }

  @Test("Two, or ten, clients that take all they can leave a part to each of many who come later")
  func newcomers() {
    for (perClient, greedy) in [(10_500, 2), (6_000, 2), (10_500, 10), (11_000, 3)] {
      var shares = FairShares<Int>(ShareLimit(total: 12_000, perClient: perClient))
      for client in 0..<greedy { _ = Self.fill(&shares, client) }
      for newcomer in 100..<120 {
        let own = Self.fill(&shares, newcomer)
        #expect(own >= 1, "limit \(perClient), \(greedy) clients, newcomer \(newcomer)")
      }
      #expect(shares.total < 12_000)
    }
  }

  @Test("Shares shrink as clients come, and what one gives back others may have")
  func shrinking() {
    var shares = FairShares<Int>(ShareLimit(total: 1_000, perClient: 500))
    let first = (0..<4).map { Self.fill(&shares, $0) }
    #expect(first == first.sorted(by: >) && first[0] == 500 && Set(first).count == 4)
    #expect(shares.refusal(of: 1, for: 3) == .total)
    shares.release(400, of: 0)
    #expect(Self.fill(&shares, 3) > first[3])
    // A client that now has more than its share keeps it.
    #expect(shares.held(by: 1) == first[1])
  }

  @Test("Limits as large as a number can be do not overflow, and limits of nothing refuse everything")
  func extremes() {
    var unlimited = FairShares<Int>(ShareLimit(total: .max, perClient: .max))
    #expect(unlimited.take(.max / 2, for: 1) == nil)
    #expect(unlimited.take(.max / 4, for: 2) == nil)
    #expect(unlimited.take(.max, for: 1) == .perClient)
    #expect(FairShares<Int>(ShareLimit(total: 0, perClient: 5)).refusal(of: 1, for: 1) == .total)
    #expect(FairShares<Int>(ShareLimit(total: 5, perClient: 0)).refusal(of: 1, for: 1) == .perClient)
    // After the total was lowered below the held amount.
    #expect(ShareLimit(total: 10, perClient: 10).refusal(of: 1, held: 3, total: 20) == .total)
    #expect(ShareLimit(total: 10, perClient: 10).refusal(of: 0, held: 30, total: 20) == nil)
  }
}
