import TestKit

/// Sends what is nearly HTTP.
struct NoiseAttack: Attack {
  let name = "noise"
  let summary = "sends requests with some bytes changed, on a connection each"

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    let request = WireRequest("PATCH", "/v1/objects/Big/4", body: #"{"data":[1,{"a":"b"}]}"#)
    var bytes = Array(request.text(to: neighbour.address).utf8)
    for _ in 0..<Int.random(in: 1...8, using: &random) {
      bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
    }
    neighbour.hold(bytes, answers: false)
  }
}
