import HTTPServer
import HTTPTypes
import KeywayAPI
import Seeding
import Testing

@Suite("The memory of idempotency keys")
struct IdempotencyMemoryTests {
  private static func key(_ text: String) throws -> IdempotencyKey { try IdempotencyKey(text) }

  private static func request(_ text: String) -> RequestFingerprint {
    RequestFingerprint(head: "POST /\n\n", body: Array(text.utf8))
  }

  private static func answer(_ text: String) -> Response { Response(status: .ok, body: Array(text.utf8)) }

  /// What a request of one byte under a key of one byte counts.
  private static let unit = IdempotencyMemory.overheadBytes + 1 + "POST /\n\n".utf8.count + 1

  private static func memory(keys: Int = 10, bytes: Int = 1 << 20, seconds: UInt64 = 60) -> IdempotencyMemory {
    var limits = IdempotencyMemory.Limits()
    limits.keys = keys
    limits.bytes = bytes
    limits.seconds = seconds
    return IdempotencyMemory(limits: limits)
  }

  private static func word(_ finding: IdempotencyMemory.Finding) -> String {
    switch finding {
    case .first: "first"
    case .answered(let response): "answered \(String(decoding: response.body, as: UTF8.self))"
    case .underWay: "under way"
    case .reused: "reused"
    case .full: "full"
    case .tooLarge: "too large"
    }
  }

  @Test("A key is unknown, under way, answered; a failure makes it unknown again")
  func states() throws {
    var memory = Self.memory()
    let key = try Self.key("a")
    let begin = { (memory: inout IdempotencyMemory, body: String) in
      Self.word(memory.begin(key, Self.request(body), at: 0))
    }
    #expect(begin(&memory, "x") == "first")
    #expect(begin(&memory, "x") == "under way")
    #expect(begin(&memory, "y") == "reused")
    memory.abandon(key)
    #expect(memory.keyCount == 0 && memory.byteCount == 0)
    #expect(begin(&memory, "y") == "first")
    memory.keep(Self.answer("done"), for: key, at: 0)
    #expect(begin(&memory, "y") == "answered done")
    #expect(begin(&memory, "x") == "reused")
    #expect(memory.keyCount == 1)
    #expect(memory.byteCount == Self.unit + 4)
  }

  @Test("An answer lives for its seconds from when it was given, and a request under way for as long as it takes")
  func age() throws {
    var memory = Self.memory(seconds: 10)
    let key = try Self.key("a")
    _ = memory.begin(key, Self.request("x"), at: 100)
    #expect(Self.word(memory.begin(key, Self.request("x"), at: 1_000)) == "under way")
    memory.keep(Self.answer("1"), for: key, at: 1_000)
    #expect(Self.word(memory.begin(key, Self.request("x"), at: 1_009)) == "answered 1")
    #expect(Self.word(memory.begin(key, Self.request("y"), at: 1_010)) == "first")
  }

  @Test("The oldest answer makes room, by number and by bytes, and is not made younger by being given again")
  func room() throws {
    for memory in [Self.memory(keys: 2), Self.memory(bytes: 2 * Self.unit + 2)] {
      var memory = memory
      for name in ["a", "b", "a", "c"] {
        if case .first = memory.begin(try Self.key(name), Self.request("x"), at: 0) {
          memory.keep(Self.answer("1"), for: try Self.key(name), at: 0)
        }
        memory.checkInvariants()
      }
      #expect(Self.word(memory.begin(try Self.key("b"), Self.request("x"), at: 0)) == "answered 1")
      #expect(Self.word(memory.begin(try Self.key("c"), Self.request("x"), at: 0)) == "answered 1")
      #expect(Self.word(memory.begin(try Self.key("a"), Self.request("x"), at: 0)) == "first")
    }
  }

  @Test("Where requests under way fill the memory there is no room, and nothing is forgotten in vain")
  func full() throws {
    for memory in [Self.memory(keys: 2), Self.memory(bytes: 2 * Self.unit + 2)] {
      var memory = memory
      for name in ["a", "b"] {
        #expect(Self.word(memory.begin(try Self.key(name), Self.request("x"), at: 0)) == "first")
      }
      #expect(Self.word(memory.begin(try Self.key("c"), Self.request("x"), at: 0)) == "full")
      memory.keep(Self.answer("1"), for: try Self.key("a"), at: 0)
      #expect(Self.word(memory.begin(try Self.key("c"), Self.request("x"), at: 0)) == "first")
      #expect(Self.word(memory.begin(try Self.key("a"), Self.request("x"), at: 0)) == "full")
      #expect(memory.keyCount == 2)
    }
  }

  @Test("A request over the bound by itself is too large, and an answer that fits beside nothing is forgotten")
  func tooLarge() throws {
    var memory = Self.memory(bytes: Self.unit)
    #expect(Self.word(memory.begin(try Self.key("a"), Self.request("xx"), at: 0)) == "too large")
    #expect(Self.word(memory.begin(try Self.key("a"), Self.request("x"), at: 0)) == "first")
    memory.keep(Self.answer("1"), for: try Self.key("a"), at: 0)
    #expect(memory.keyCount == 0 && memory.byteCount == 0)
  }

  @Test("Whatever happens, it is what the oracle says, and within its bounds")
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
        keys: Int.random(in: 1...5, using: &random), bytes: Int.random(in: 400...4_000, using: &random),
        seconds: UInt64.random(in: 1...20, using: &random))
      oracle = IdempotencyOracle(limits: memory.limits)
    }

    mutating func step(_ random: inout SplitMix64) throws {
      if Int.random(in: 0..<4, using: &random) == 0 { now += UInt64.random(in: 0...8, using: &random) }
      let underWay = oracle.underWay.randomElement(using: &random)
      let size = Int.random(in: 0...5, using: &random) * 90
      switch (Int.random(in: 0..<6, using: &random), underWay) {
      case (0, let key?):
        trail.append("\(now): abandon \(key)")
        memory.abandon(try IdempotencyMemoryTests.key(key))
        oracle.abandon(key)
      case (1...2, let key?):
        trail.append("\(now): keep \(size) for \(key)")
        let text = String(repeating: "=", count: size)
        memory.keep(IdempotencyMemoryTests.answer(text), for: try IdempotencyMemoryTests.key(key), at: now)
        oracle.keep(text, for: key, cost: size, at: now)
      default:
        try begin("key\(Int.random(in: 0..<7, using: &random))", size / 180, &random)
      }
      memory.checkInvariants()
      if memory.keyCount != oracle.records.count || memory.byteCount != oracle.bytes {
        differ("\(memory.keyCount) keys of \(memory.byteCount) bytes", "\(oracle.records.count) of \(oracle.bytes)")
      }
    }

    private mutating func begin(_ key: String, _ size: Int, _ random: inout SplitMix64) throws {
      let body = String(repeating: "x", count: size * 200)
      let request = IdempotencyMemoryTests.request(body)
      let cost = IdempotencyMemory.overheadBytes + key.utf8.count + request.byteCount
      let found = IdempotencyMemoryTests.word(memory.begin(try IdempotencyMemoryTests.key(key), request, at: now))
      let expected = oracle.begin(key, body, cost: cost, at: now)
      trail.append("\(now): begin \(key) with \(size): \(found.prefix(20))")
      if found != expected { differ(found, expected) }
    }

    private mutating func differ(_ found: String, _ expected: String) {
      difference = "\(found), and not \(expected)"
      trail.append(difference ?? "")
    }
  }
}
