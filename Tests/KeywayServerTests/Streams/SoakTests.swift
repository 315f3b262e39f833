import HTTPServer
import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Random cells over a world in motion")
struct SoakTests {
  @Test("Clients that apply their events show the same as GET", arguments: 0..<4 as Range<UInt64>)
  func soak(_ round: UInt64) throws {
    var random = SplitMix64(seed: seed &+ round)
    let server = try Staff.server()
    try server.client.must("PUT", "/v1/objects/Department/mark", body: "{}")
    let clients = try (0..<3).map { _ in try SoakClient(server) }
    var world = StaffWriter(server)
    for step in 0..<800 {
      if Int.random(in: 0..<3, using: &random) == 0 {
        try clients.randomElement(using: &random)?.act(&random)
      } else {
        try world.write(&random)
      }
      if Int.random(in: 0..<40, using: &random) == 0 {
        try clients.randomElement(using: &random)?.check("seed \(seed), round \(round), step \(step)")
      }
    }
    for (number, client) in clients.enumerated() { try client.check("seed \(seed), round \(round), client \(number)") }
    // There were enough random actions for every type of event.
    let tally = clients.reduce(into: [:]) { $0.merge($1.screen.tally, uniquingKeysWith: +) }
    for name in ["change", "results", "content"] { #expect(tally[name] ?? 0 > 0, "seed \(seed), round \(round)") }
    try end(clients, server)
  }

  @Test("The same holds for readers who are slow, and told in one what they missed", arguments: 0..<2 as Range<UInt64>)
  func slow(_ round: UInt64) throws {
    var random = SplitMix64(seed: seed &+ round)
    let server = try Staff.server { $0.server.pendingBytesPerStream = 32_768 }
    try server.client.must("PUT", "/v1/objects/Department/mark", body: "{}")
    let clients = try (0..<3).map { _ in try SoakClient(server, isSlow: true) }
    var world = StaffWriter(server)
    world.textBytes = 60_000
    for client in clients { for _ in 0..<6 { try client.act(&random) } }
    for step in 0..<900 {
      if Int.random(in: 0..<8, using: &random) == 0 {
        try clients.randomElement(using: &random)?.act(&random)
      } else {
        try world.write(&random)
      }
      guard step % 300 == 299 else { continue }
      for (number, client) in clients.enumerated() {
        try client.check("seed \(seed), round \(round), step \(step), client \(number)")
      }
    }
    try end(clients, server)
  }

  /// Disconnects the clients, and expects that nothing of them is left.
  private func end(_ clients: [SoakClient], _ server: TestServer) throws {
    for client in clients { client.screen.stream.socket.close() }
    #expect(
      try Deadline().awaits {
        let status = try server.client.json("/v1/status")
        return status["streams"].whole == 0 && status["observations"].whole == 0 && server.openQueries == 0
      })
  }
}
