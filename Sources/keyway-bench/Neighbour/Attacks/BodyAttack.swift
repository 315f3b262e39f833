import TestKit

/// Sends bodies without their ends.
struct BodyAttack: Attack {
  let name = "bodies"
  let summary = "sends 1 MB of a body on many connections, and never the last byte"

  private static let body = [UInt8](repeating: UInt8(ascii: " "), count: 1_000_000)

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    let head =
      "PUT /v1/objects/Big/4 HTTP/1.1\r\nHost: \(neighbour.address.hostField)\r\n"
      + "Content-Type: application/json\r\nContent-Length: \(Self.body.count + 1)\r\n\r\n"
    neighbour.hold(Array(head.utf8) + Self.body, answers: false)
  }
}
