import TestKit
import Testing

@testable import keyway_bench

@Suite("Linearizability of a register")
struct LinearizabilityTests {
  private typealias Operation = RegisterOperation

  private func write(_ value: Int?, _ invoked: UInt64, _ answered: UInt64?) -> Operation {
    Operation(invoked: invoked, answered: answered, condition: .always, effect: .becomes(value))
  }

  private func write(_ value: Int?, over old: Int?, _ invoked: UInt64, _ answered: UInt64?) -> Operation {
    Operation(invoked: invoked, answered: answered, condition: .isState(old), effect: .becomes(value))
  }

  private func read(_ value: Int?, _ invoked: UInt64, _ answered: UInt64) -> Operation {
    Operation(invoked: invoked, answered: answered, condition: .isState(value), effect: .none)
  }

  private func refused(_ condition: Operation.Condition, _ invoked: UInt64, _ answered: UInt64) -> Operation {
    Operation(invoked: invoked, answered: answered, condition: condition, effect: .none)
  }

  private func holds(_ history: [Operation], from initial: Int? = nil) -> Bool {
    Linearizability.check(history, from: initial) == .holds
  }

  @Test("Operations one after the other have one order")
  func sequential() {
    #expect(holds([]))
    #expect(holds([write(1, 0, 1), read(1, 2, 3), write(nil, 4, 5), read(nil, 6, 7)]))
    #expect(!holds([write(1, 0, 1), read(nil, 2, 3)]))
    #expect(!holds([read(1, 0, 1), write(1, 2, 3)]))
    #expect(holds([read(1, 0, 1)], from: 1) && !holds([read(1, 0, 1)], from: 2))
  }

  @Test("Overlapping operations may have any order, but only one")
  func overlapping() {
    #expect(holds([write(1, 0, 10), write(2, 0, 10), read(1, 11, 12)]))
    #expect(holds([write(1, 0, 10), write(2, 0, 10), read(2, 11, 12)]))
    #expect(!holds([write(1, 0, 10), write(2, 0, 10), read(2, 11, 12), read(1, 13, 14)]))
    // A read during the write sees it, and a later one no longer does.
    #expect(!holds([write(1, 0, 10), read(1, 1, 2), read(nil, 3, 4)]))
    #expect(holds([write(1, 0, 10), read(nil, 1, 2), read(1, 3, 4)]))
  }

  @Test("Of two conditional writes over the same value one succeeds; the other is refused, and has to be")
  func conditions() {
    #expect(!holds([write(2, over: 1, 0, 10), write(3, over: 1, 0, 10)], from: 1))
    #expect(holds([write(2, over: 1, 0, 10), refused(.isNot(1), 0, 10)], from: 1))
    #expect(!holds([refused(.isNot(1), 0, 10)], from: 1))
    // A refusal by a state from before the request: the register held 1 all the time.
    #expect(!holds([write(1, 0, 1), refused(.isState(nil), 2, 3)]))
    #expect(holds([refused(.isPresent, 0, 1), refused(.isOther(2), 0, 1)], from: 1))
    #expect(!holds([refused(.isOther(2), 0, 1)]) && holds([refused(.isNot(2), 0, 1)]))
  }

  @Test("A write without an answer is done at any later time or never, but not twice and not before its request")
  func unanswered() {
    #expect(holds([write(1, 0, nil), read(nil, 1, 2)]) && holds([write(1, 0, nil), read(1, 1, 2)]))
    #expect(holds([write(1, 0, nil), read(nil, 1, 2), write(2, 3, 4), read(1, 5, 6)]))
    #expect(!holds([write(1, 0, nil), read(1, 1, 2), write(2, 3, 4), read(1, 5, 6)]))
    #expect(!holds([read(1, 0, 1), write(1, 2, nil)]))
    #expect(!holds([write(2, over: 1, 0, nil), read(2, 1, 2)], from: 3))
  }

  @Test("A history that has no order says where it came to an end")
  func stuck() {
    let history = [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]
    #expect(Linearizability.check(history, from: nil) == .isViolated(taken: 2, stuck: [2], state: 2))
  }

  @Test("Writes without an answer that nothing shows make no search long")
  func unshown() {
    let open = (1...30).map { write($0, over: Int($0) - 1, 0, nil) } + (31...60).map { write($0, 0, nil) }
    let seen = (0..<30).flatMap { step -> [Operation] in
      let time = UInt64(10 * step)
      return [write(100 + step, time + 1, time + 3), read(100 + step, time + 4, time + 5)]
    }
    #expect(Linearizability.check(open + seen, from: 0, maximumSteps: 1000) == .holds)
    #expect(Linearizability.check(open + seen + [read(60, 400, 401)], from: 0, maximumSteps: 1000) == .holds)
    // One of them is needed although no value of it is shown.
    #expect(holds([write(2, 0, nil), refused(.isOther(1), 1, 2)], from: 1))
  }

  @Test("A search that would take too long is given up")
  func undecided() {
    let history = (1...30).map { write($0, 0, 100) } + [read(99, 101, 102)]
    #expect(Linearizability.check(history, from: nil, maximumSteps: 1000) == .isUndecided)
  }

  @Test("On random histories it says the same as a trial of all orders")
  func oracle() {
    var verdicts = [0, 0]
    for round in 0..<4000 {
      var random = SplitMix64(seed: seed, part: UInt64(round) + 1)
      let initial = state(&random)
      let count = Int.random(in: 1...6, using: &random)
      let history = random.chance(50) ? plausible(count, from: initial, &random) : any(count, &random)
      let expected = AllOrders.hold(of: history, from: initial)
      verdicts[expected ? 0 : 1] += 1
      #expect(
        holds(history, from: initial) == expected, "seed \(seed), round \(round): \(history) from \(initial ?? 0)")
    }
    // Both kinds are tried.
    #expect(verdicts.allSatisfy { $0 > 400 }, "\(verdicts)")
  }

  @Test("Long histories that are right are found right, with few steps")
  func long() {
    for round in 0..<20 {
      var random = SplitMix64(seed: seed, part: UInt64(round) + 100_001)
      let history = plausible(400, from: nil, &random, unansweredPercent: 2).shuffled(using: &random)
      #expect(holds(history), "seed \(seed), round \(round)")
    }
  }

  private func state(_ random: inout SplitMix64) -> Int? {
    random.chance(25) ? nil : Int.random(in: 1...3, using: &random)
  }

  /// Makes operations of any kind at any time.
  private func any(_ count: Int, _ random: inout SplitMix64) -> [Operation] {
    (0..<count).map { _ in
      let start = UInt64.random(in: 0...8, using: &random)
      let end = random.chance(25) ? nil : start + UInt64.random(in: 0...6, using: &random)
      return Operation(
        invoked: start, answered: end, condition: condition(&random),
        effect: random.chance(50) ? .none : .becomes(state(&random)))
    }
  }

  private func condition(_ random: inout SplitMix64) -> Operation.Condition {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: .always
    case 1: .isNot(Int.random(in: 1...3, using: &random))
    case 2: .isOther(Int.random(in: 1...3, using: &random))
    case 3: .isPresent
    default: .isState(state(&random))
    }
  }

  /// Makes operations that took effect one after the other, with requests and responses around that; some are left out,
  /// or were never done.
  private func plausible(
    _ count: Int, from initial: Int?, _ random: inout SplitMix64, unansweredPercent: Int = 10
  ) -> [Operation] {
    var held = initial
    var history: [Operation] = []
    for index in 0..<count {
      let moment = UInt64(index) * 10 + 100
      let start = moment - UInt64.random(in: 0...25, using: &random)
      var operation = Operation(
        invoked: start, answered: moment + UInt64.random(in: 0...25, using: &random), condition: condition(&random),
        effect: random.chance(50) ? .none : .becomes(state(&random)))
      if !operation.condition.holds(of: held) { operation.condition = .isState(held) }
      let isUnknown = operation.effect != .none && random.chance(unansweredPercent)
      if isUnknown { operation.answered = nil }
      if !isUnknown || random.chance(50) { held = operation.effect.applied(to: held) }
      history.append(operation)
    }
    return history
  }
}

/// The definition by brute force: tries every order of every choice of the operations without a response.
private enum AllOrders {
  static func hold(of history: [RegisterOperation], from initial: Int?) -> Bool {
    extend([], history, initial)
  }

  private static func extend(_ taken: [Int], _ history: [RegisterOperation], _ state: Int?) -> Bool {
    let rest = history.indices.filter { !taken.contains($0) }
    if rest.allSatisfy({ history[$0].answered == nil }) { return true }
    return rest.contains { index in
      let operation = history[index]
      let isTooEarly = rest.contains { other in
        history[other].answered.map { $0 < operation.invoked } ?? false
      }
      guard !isTooEarly, operation.condition.holds(of: state) else { return false }
      return extend(taken + [index], history, operation.effect.applied(to: state))
    }
  }
}
