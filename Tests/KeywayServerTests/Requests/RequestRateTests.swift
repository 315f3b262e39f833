import HTTPServer
import KeywayServer
import TestKit
import Testing

/// The limit on the request rate of a client.
@Suite("Request rates") struct RequestRateTests {
  private static let second: UInt64 = 1_000_000_000

  private func rates(_ perSecond: Int, clients: Int = 100) -> RequestRates {
    var limits = RequestRates.Limits()
    (limits.requestsPerSecond, limits.clients) = (perSecond, clients)
    return RequestRates(limits)
  }

  /// Returns, for each of so many requests at one time, true if it is admitted.
  private func take(
    _ count: Int, _ rates: inout RequestRates, _ client: ClientAddress, at now: UInt64
  ) -> [Bool] {
    var taken: [Bool] = []
    for _ in 0..<count { taken.append(rates.take(client, at: now)) }
    return taken
  }

  @Test("A bucket holds a second of requests and fills steadily; who is refused takes nothing")
  func bucket() {
    var rates = rates(4)
    let client = ClientAddress(number: 1)
    let start = 7 * Self.second
    let first = take(6, &rates, client, at: start)
    #expect(first == [true, true, true, true, false, false])
    let next = start + Self.second / 4
    let second = take(2, &rates, client, at: next)
    #expect(second == [true, false])
    let later = take(5, &rates, client, at: start + 9 * Self.second)
    #expect(later == [true, true, true, true, false])
    let other = take(1, &rates, ClientAddress(number: 2), at: start + 9 * Self.second)
    #expect(other == [true])
  }

  @Test("In no second a client gets more than twice its rate, nor less than its rate where it asks for it")
  func bounds() {
    var random = SplitMix64(seed: seed)
    var rates = rates(10)
    let client = ClientAddress(number: 1)
    var now = Self.second
    var taken: [UInt64] = []
    for _ in 0..<5_000 {
      now += UInt64.random(in: 0...Self.second / 20, using: &random)
      if rates.take(client, at: now) { taken.append(now) }
    }
    for (index, time) in taken.enumerated() where index >= 20 {
      #expect(time - taken[index - 20] > Self.second, "seed \(seed)")
    }
    let rate = Double(taken.count) / (Double(now) / Double(Self.second))
    #expect(rate > 9 && rate < 11, "seed \(seed)")
  }

  @Test("Full buckets are forgotten first, then those that are nearly full")
  func forgetting() {
    var rates = rates(10, clients: 16)
    let busy = ClientAddress(number: 200)
    for _ in 0..<10 { _ = rates.take(busy, at: Self.second) }
    for number in UInt8(0)..<15 { _ = rates.take(ClientAddress(number: number), at: Self.second) }
    #expect(rates.count == 16)
    let isNewTaken = rates.take(ClientAddress(number: 100), at: Self.second)
    #expect(isNewTaken && rates.count == 15)
    let isBusyTaken = rates.take(busy, at: Self.second)
    #expect(!isBusyTaken)
    rates.sweep(at: Self.second + Self.second / 2)
    #expect(rates.count == 1)
    rates.sweep(at: 3 * Self.second)
    #expect(rates.count == 0)
  }

  @Test("Each identity has its rate, admins too; without a token each address; health and metrics have none")
  func requests() throws {
    let guarded = try GuardedServer(objects: []) { $0.access.rates.requestsPerSecond = 1 }
    let bad = ["Authorization": "Bearer x"]
    // Some of many requests exceed one in a second, however long they take.
    func refusals(_ target: String, _ headers: [String: String], from client: WireClient) throws -> [WireResponse] {
      var refused: [WireResponse] = []
      for _ in 0..<500 where refused.isEmpty {
        let response = try client.send("GET", target, headers)
        if response.status == 429 { refused.append(response) }
      }
      return refused
    }
    for headers in [guarded.reader, guarded.admin, [:], bad] {
      let refused = try refusals("/v1/entities", headers, from: guarded.client)
      #expect(refused.first?.problem == "too-many-requests" && refused.first?["Retry-After"] == "1")
    }
    #expect(try guarded.client.send("GET", "/v1/entities", guarded.bearer("bob")).status == 200)
    #expect(try guarded.server.client(from: "127.0.0.9").send("GET", "/v1/entities").status == 401)
    for target in ["/healthz", "/readyz", "/metrics"] {
      #expect(try refusals(target, guarded.admin, from: guarded.client).isEmpty, "\(target)")
    }
  }

  @Test("access.streams is for each identity; streams.perAddress still holds where it is less")
  func streams() throws {
    for (access, perAddress) in [(2, 50), (50, 2), (0, 2)] {
      let guarded = try GuardedServer(objects: []) {
        $0.access.streams = access
        $0.server.streamsPerAddress = perAddress
      }
      let open = try (0..<2).map { _ in try guarded.client.stream("/v1/streams", guarded.admin) }
      let headers = guarded.admin.merging(["Accept": "text/event-stream"]) { $1 }
      let refused = try guarded.client.send("GET", "/v1/streams", headers)
      #expect(refused.status == 429 && refused.problem == "too-many-streams" && refused["Retry-After"] != nil)
      withExtendedLifetime(open) {}
    }
  }
}
