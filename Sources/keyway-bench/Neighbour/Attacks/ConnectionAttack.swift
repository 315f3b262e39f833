import TestKit

/// Takes connections and does nothing with them.
struct ConnectionAttack: Attack {
  let name = "connections"
  let summary = "opens as many connections as it can, and sends half a request on each"

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    neighbour.hold(Array("GET /v1/status HTTP/1.1\r\nHost: ".utf8), answers: false)
  }
}
