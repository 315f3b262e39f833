import TestKit

/// Opens streams and never reads from them.
struct StreamAttack: Attack {
  let name: String
  let summary: String
  /// Gives the path of a stream.
  let target: @Sendable (_ neighbour: Neighbour, _ random: inout SplitMix64) -> String
  /// What is written now and then so that the streams have something to tell; nil for nothing.
  var write: (@Sendable (_ random: inout SplitMix64) -> WireRequest)?

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    if let write, random.chance(10) {
      neighbour.send(write(&random))
    } else {
      neighbour.holdStream(target(neighbour, &random))
    }
  }
}
