import TestKit

/// Asks for nothing: what the others notice is what a program on the same machine costs them that uses the processors
/// as much as an attacker does.
struct ProcessorAttack: Attack {
  let name = "processors"
  let summary = "keeps the processors busy and asks the server for nothing, for comparison"

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    for _ in 0..<10_000 { _ = random.next() }
  }
}
