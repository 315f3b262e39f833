import TestKit

/// Does all of the others at random.
struct MixedAttack: Attack {
  let name = "mixture"
  let summary = "does all of the above, at random"
  /// What it chooses from.
  let attacks: [any Attack]

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    attacks.randomElement(using: &random)?.step(neighbour, &random)
  }
}
