import Glibc
import HTTPTypes
import TestKit
import Testing

@testable import HTTPServer
@testable import KeywayServer

@Suite("The memory of idempotency keys")
struct IdempotencyMemoryTests {
  private static func key(_ text: String) throws -> IdempotencyKey { try IdempotencyKey(text) }

  /// Makes a request with a body, under a key.
  private static func request(_ key: String, _ text: String) throws -> IdempotentRequest {
    IdempotentRequest(
      key: try Self.key(key), fingerprint: RequestFingerprint(head: "POST /\n\n", body: Array(text.utf8)))
  }

  private static func answer(_ text: String) -> Response { Response(status: .ok, body: Array(text.utf8)) }

  /// The bytes that count for an answered request under a key of one byte, besides its response.
  private static let unit = IdempotencyMemory.overheadBytes + 1
  /// The bytes that count for a request in progress under such a key, besides its body.
  private static let pending = unit + IdempotencyMemory.headBytes

  private static func memory(
    keys: Int = 10, bytes: Int = 1 << 20, clientPercent: Int = 100, seconds: UInt64 = 60
  ) -> IdempotencyMemory {
    var limits = IdempotencyMemory.Limits()
    limits.keys = keys
    limits.bytes = bytes
    limits.clientPercent = clientPercent
    limits.seconds = seconds
    return IdempotencyMemory(limits: limits)
  }

  /// Clients of different addresses.
  private static let clients = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(ClientAddress.init(numbers:))

  /// Begins a request with a body of so many bytes. Returns the outcome as a word.
  private static func begin(
    _ memory: inout IdempotencyMemory, _ name: String, _ body: String = "x", from client: Int = 0, bytes: Int? = nil,
    at now: UInt64 = 0
  ) throws -> String {
    word(
      memory.begin(
        try request(name, body), from: clients[client], bodyBytes: bytes ?? body.utf8.count, at: now))
  }

  private static func word(_ finding: IdempotencyMemory.Finding) -> String {
    switch finding {
    case .first: "first"
    case .answered(let response): "answered \(String(decoding: response.body, as: UTF8.self))"
    case .underWay: "under way"
    case .reused: "reused"
    case .full: "full"
    case .shareFull: "share full"
    case .tooLarge: "too large"
    }
  }

  @Test("A key is unknown, under way, answered; a failure makes it unknown again")
  func states() throws {
    var memory = Self.memory()
    #expect(try Self.begin(&memory, "a", "x") == "first")
    #expect(try Self.begin(&memory, "a", "x") == "under way")
    #expect(try Self.begin(&memory, "a", "y") == "reused")
    memory.abandon(try Self.key("a"), at: 0)
    #expect(memory.keyCount == 0 && memory.byteCount == 0)
    #expect(try Self.begin(&memory, "a", "y") == "first")
    #expect(memory.byteCount == Self.pending + 1)
    memory.keep(Self.answer("done"), for: try Self.key("a"), at: 0)
    #expect(try Self.begin(&memory, "a", "y") == "answered done")
    #expect(try Self.begin(&memory, "a", "x") == "reused")
    #expect(memory.keyCount == 1)
    #expect(memory.byteCount == Self.unit + 4)
  }

  @Test("A request that fails here and was carried out by another node meanwhile is not the first again")
  func precedent() throws {
    var memory = Self.memory(seconds: 10)
    #expect(try Self.begin(&memory, "a", "x") == "first")
    memory.restore(Self.answer("elsewhere"), for: try Self.request("a", "x"), age: 0, at: 0)
    #expect(try Self.begin(&memory, "a", "x") == "under way")
    memory.abandon(try Self.key("a"), at: 5)
    memory.checkInvariants()
    #expect(memory.byteCount(of: Self.clients[0]) == 0)
    #expect(try Self.begin(&memory, "a", "x", at: 14) == "answered elsewhere")
    #expect(try Self.begin(&memory, "a", "y", at: 14) == "reused")
    #expect(try Self.begin(&memory, "a", "x", at: 15) == "first")
    memory.abandon(try Self.key("a"), at: 15)
    #expect(memory.keyCount == 0 && memory.byteCount == 0, "a precedent is for one request")
  }

  @Test("An answer lives for its seconds from when it was given, and a request under way for as long as it takes")
  func age() throws {
    var memory = Self.memory(seconds: 10)
    #expect(try Self.begin(&memory, "a", at: 100) == "first")
    #expect(try Self.begin(&memory, "a", at: 1_000) == "under way")
    memory.keep(Self.answer("1"), for: try Self.key("a"), at: 1_000)
    #expect(try Self.begin(&memory, "a", at: 1_009) == "answered 1")
    #expect(try Self.begin(&memory, "a", "y", at: 1_010) == "first")
  }

  @Test("If the memory is full, by number or by bytes, the new request is refused, and no response is dropped")
  func room() throws {
    for memory in [Self.memory(keys: 2), Self.memory(bytes: 2 * Self.pending + 2)] {
      var memory = memory
      for name in ["a", "b"] {
        #expect(try Self.begin(&memory, name) == "first")
        memory.keep(Self.answer(String(repeating: "=", count: 300)), for: try Self.key(name), at: 0)
        memory.checkInvariants()
      }
      #expect(try Self.begin(&memory, "c", at: 59) == "share full")
      for name in ["a", "b"] { #expect(try Self.begin(&memory, name, at: 59).hasPrefix("answered =")) }
      // Only age makes room.
      #expect(try Self.begin(&memory, "c", at: 60) == "first")
      #expect(memory.keyCount == 1)
    }
  }

  @Test("A client that fills its share takes nothing from another: its own requests are refused")
  func shares() throws {
    var memory = Self.memory(keys: 10, bytes: 1 << 20, clientPercent: 40)
    #expect(try Self.begin(&memory, "mine", from: 1) == "first")
    memory.keep(Self.answer("1"), for: try Self.key("mine"), at: 0)
    for number in 0..<4 {
      #expect(try Self.begin(&memory, "s\(number)") == "first")
      memory.keep(Self.answer("2"), for: try Self.key("s\(number)"), at: 0)
    }
    #expect(try Self.begin(&memory, "s4") == "share full")
    #expect(try Self.begin(&memory, "mine", from: 1) == "answered 1")
    #expect(try Self.begin(&memory, "next", from: 1) == "first")
    memory.checkInvariants()
    // The same by bytes.
    memory = Self.memory(keys: 100, bytes: 1 << 20, clientPercent: 40)
    let large = 100_000
    for number in 0..<3 { #expect(try Self.begin(&memory, "l\(number)", from: 2, bytes: large) == "first") }
    #expect(try Self.begin(&memory, "l3", from: 2, bytes: 2 * large) == "share full")
    #expect(try Self.begin(&memory, "l4", from: 1, bytes: large) == "first")
    memory.checkInvariants()
  }

  @Test("Clients that fill it leave a further one none, whose request is refused and not carried out")
  func full() throws {
    var memory = Self.memory(keys: 4, clientPercent: 75)
    for (number, client) in [0, 0, 0, 1].enumerated() {
      #expect(try Self.begin(&memory, "k\(number)", from: client) == "first")
    }
    #expect(try Self.begin(&memory, "k4", from: 2) == "full")
    memory.abandon(try Self.key("k0"), at: 0)
    #expect(try Self.begin(&memory, "k4", from: 2) == "first")
  }

  @Test("Two clients that take all they get leave keys and bytes to others")
  func newcomers() throws {
    for memory in [
      Self.memory(keys: 160, clientPercent: 50), Self.memory(keys: 1_000, bytes: 1 << 17, clientPercent: 50),
    ] {
      var memory = memory
      var counts: [Int] = []
      for client in 0..<3 {
        var count = 0
        while try Self.begin(&memory, "\(client)-\(count)", from: client) == "first" { count += 1 }
        counts.append(count)
      }
      #expect(counts[0] > counts[1] && counts[1] > counts[2] && counts[2] > 3, "\(counts)")
      memory.checkInvariants()
    }
  }

  @Test("A request over a client's share by itself is too large; a body for which there is no room is left out")
  func tooLarge() throws {
    var memory = Self.memory(bytes: Self.pending + 10)
    #expect(try Self.begin(&memory, "a", bytes: 11) == "too large")
    #expect(try Self.begin(&memory, "a", bytes: 10) == "first")
    memory.keep(Self.answer(String(repeating: "=", count: 2000)), for: try Self.key("a"), at: 0)
    #expect(memory.keyCount == 1 && memory.byteCount == Self.unit)
    #expect(try Self.begin(&memory, "a") == "answered ", "it was carried out, and is not carried out again")
    memory.checkInvariants()
  }

  @Test("Restored keys count in total but for no client; if the limits are lower now, the oldest are dropped")
  func restored() throws {
    var memory = Self.memory(keys: 3, clientPercent: 67)
    for number in 0..<4 {
      memory.restore(
        Self.answer("\(number)"), for: try Self.request("r\(number)", "x"), age: UInt64(40 - number), at: 0)
    }
    memory.checkInvariants()
    #expect(memory.keyCount == 3)
    #expect(memory.byteCount(of: Self.clients[0]) == 0)
    #expect(try Self.begin(&memory, "new") == "full")
    #expect(try Self.begin(&memory, "r1") == "answered 1")
    #expect(try Self.begin(&memory, "new", at: 21) == "first")
  }

  @Test("After any requests it agrees with the oracle, and stays within its bounds")
  func race() throws {
    for round in 0..<200 {
      var random = SplitMix64(seed: seed &+ UInt64(round) &* 1_000_003)
      var race = Race(&random)
      for _ in 0..<150 {
        try race.step(&random)
        guard race.difference == nil else {
          Issue.record("KEYWAY_TEST_SEED=\(seed), round \(round): \(race.trail.joined(separator: "\n"))")
          return
        }
      }
    }
  }

  /// The memory and the oracle side by side.
  private struct Race {
    var memory: IdempotencyMemory
    var oracle: IdempotencyOracle
    var now: UInt64 = 0
    var trail: [String] = []
    var difference: String?

    init(_ random: inout SplitMix64) {
      memory = IdempotencyMemoryTests.memory(
        keys: Int.random(in: 1...6, using: &random), bytes: Int.random(in: 1_000...8_000, using: &random),
        clientPercent: Int.random(in: 20...100, using: &random), seconds: UInt64.random(in: 1...20, using: &random))
      oracle = IdempotencyOracle(limits: memory.limits)
    }

    mutating func step(_ random: inout SplitMix64) throws {
      if Int.random(in: 0..<4, using: &random) == 0 { now += UInt64.random(in: 0...8, using: &random) }
      let underWay = oracle.underWay.randomElement(using: &random)
      let size = Int.random(in: 0...5, using: &random) * 90
      switch (Int.random(in: 0..<6, using: &random), underWay) {
      case (0, let key?):
        trail.append("\(now): abandon \(key)")
        memory.abandon(try IdempotencyMemoryTests.key(key), at: now)
        oracle.abandon(key)
      case (1...2, let key?):
        trail.append("\(now): keep \(size) for \(key)")
        let text = String(repeating: "=", count: size)
        memory.keep(IdempotencyMemoryTests.answer(text), for: try IdempotencyMemoryTests.key(key), at: now)
        oracle.keep(text, for: key, at: now)
      default:
        try begin("key\(Int.random(in: 0..<7, using: &random))", size / 180, &random)
      }
      memory.checkInvariants()
      if memory.keyCount != oracle.records.count || memory.byteCount != oracle.bytes {
        differ("\(memory.keyCount) keys of \(memory.byteCount) bytes", "\(oracle.records.count) of \(oracle.bytes)")
      }
      for (number, client) in IdempotencyMemoryTests.clients.enumerated()
      where memory.byteCount(of: client) != oracle.bytes(of: number) {
        differ("\(memory.byteCount(of: client)) bytes of client \(number)", "\(oracle.bytes(of: number))")
      }
    }

    private mutating func begin(_ key: String, _ size: Int, _ random: inout SplitMix64) throws {
      let body = String(repeating: "x", count: size * 200)
      let client = Int.random(in: 0..<3, using: &random)
      let found = try IdempotencyMemoryTests.begin(&memory, key, body, from: client, at: now)
      let expected = oracle.begin(key, body, from: client, at: now)
      trail.append("\(now): begin \(key) with \(size): \(found.prefix(20))")
      if found != expected { differ(found, expected) }
    }

    private mutating func differ(_ found: String, _ expected: String) {
      difference = "\(found), and not \(expected)"
      trail.append(difference ?? "")
    }
  }
}

extension ClientAddress {
  /// The address of a text such as `10.0.0.1`.
  fileprivate init(numbers: String) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    inet_pton(AF_INET, numbers, &address.sin_addr)
    self = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { ClientAddress($0) }
    }
  }
}
