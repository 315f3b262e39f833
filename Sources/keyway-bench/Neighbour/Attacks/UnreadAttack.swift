import TestKit

/// Asks for long answers and does not read them.
struct UnreadAttack: Attack {
  let name = "unread"
  let summary = "asks for answers of 1 MB on many connections, and reads none"

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    let request = WireRequest("GET", "/v1/objects/Big/1")
    neighbour.hold(
      Array(request.text(to: neighbour.address).utf8), answers: false, receiveBufferBytes: 4_096)
  }
}
