import TestKit

/// An attack by requests that cost more than they look.
struct RequestAttack: Attack {
  let name: String
  let summary: String
  /// Makes one of the requests.
  let request: @Sendable (_ random: inout SplitMix64) -> WireRequest

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    neighbour.send(request(&random))
  }
}
