import Support

#if canImport(Glibc)
  import Glibc
#endif

/// A runner of a check on random inputs, one after the other, until the check complains.
///
/// In the suite it runs a fixed number of rounds, and with `KEYWAY_FUZZ_SECONDS` as many as fit into that time. The
/// randomness of each round derives from the run's seed and the round's number, so that `KEYWAY_TEST_SEED` and
/// `KEYWAY_FUZZ_ROUND` repeat the one that failed. `KEYWAY_FUZZ_TRACE=1` prints each input before it is tried, for
/// inputs that end the process.
package struct Fuzzer {
  /// A complaint, with everything needed to repeat it.
  package struct Failure: CustomStringConvertible, Sendable {
    /// The fuzzer, the seed and the round, the complaint, and the input.
    package let description: String
  }

  private let name: String
  private let rounds: Int
  private let seconds: Double?
  private let firstRound: Int
  private let isTraced: Bool

  /// Creates a fuzzer with a name for its output, which runs so many rounds in the suite.
  package init(_ name: String, rounds: Int) {
    func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    self.name = name
    self.rounds = rounds
    seconds = variable("KEYWAY_FUZZ_SECONDS").flatMap(Double.init)
    firstRound = variable("KEYWAY_FUZZ_ROUND").flatMap(Int.init) ?? 0
    isTraced = variable("KEYWAY_FUZZ_TRACE") == "1"
  }

  /// Runs the rounds: `make` makes an input, `check` tries it and returns a complaint, or nil. Returns the first
  /// complaint; an error that `check` throws is one.
  package func run<Input>(
    make: (inout SplitMix64) -> Input, describe: (Input) -> String, check: (Input) throws -> String?
  ) -> Failure? {
    let end = seconds.map { SystemClock.after(seconds: $0) }
    var round = firstRound
    defer { print("\(name): \(round - firstRound) rounds with KEYWAY_TEST_SEED=\(seed)") }
    while end.map({ SystemClock.now() < $0 }) ?? (round < firstRound + rounds) {
      var random = SplitMix64(seed: seed, part: UInt64(round) &+ 1)
      let input = make(&random)
      if isTraced { print("\(name) \(round): \(describe(input))") }
      let complaint: String?
      do { complaint = try check(input) } catch { complaint = "it threw \(error)" }
      if let complaint {
        let place = "KEYWAY_TEST_SEED=\(seed) KEYWAY_FUZZ_ROUND=\(round)"
        return Failure(description: "\(name), \(place): \(complaint)\nwith \(describe(input))")
      }
      round += 1
    }
    return nil
  }

  /// Runs the rounds on bytes that a mutator makes.
  package func run(_ mutator: Mutator, check: ([UInt8]) throws -> String?) -> Failure? {
    run(
      make: { mutator.bytes(&$0) }, describe: { String(decoding: $0, as: UTF8.self).debugDescription }, check: check)
  }

  /// Runs the rounds on texts that a mutator makes.
  package func run(texts mutator: Mutator, check: (String) throws -> String?) -> Failure? {
    run(
      make: { String(decoding: mutator.bytes(&$0), as: UTF8.self) }, describe: { $0.debugDescription }, check: check)
  }
}

/// A source of inputs: valid ones with a few random changes, or sequences of pieces.
package struct Mutator: Sendable {
  private let corpus: [[UInt8]]
  private let pieces: [[UInt8]]
  private let maximumChanges: Int

  /// Bytes that parsers treat specially: ends of ranges, quotation marks, line ends, parts of UTF-8.
  private static let specialBytes: [UInt8] = [
    0, 1, 9, 10, 13, 32, 34, 39, 45, 46, 48, 58, 91, 92, 123, 125, 127, 128, 0xC3, 0xA9, 0xED, 0xF0, 0xFF,
  ]

  /// Creates a mutator of valid inputs, at least one, and of pieces that inputs are made of.
  package init(_ corpus: [String], pieces: [String] = [], maximumChanges: Int = 5) {
    self.init(corpus.map { Array($0.utf8) }, pieces: pieces.map { Array($0.utf8) }, maximumChanges: maximumChanges)
  }

  /// Creates a mutator of inputs and pieces in bytes.
  package init(_ corpus: [[UInt8]], pieces: [[UInt8]] = [], maximumChanges: Int = 5) {
    (self.corpus, self.pieces, self.maximumChanges) = (corpus, pieces, maximumChanges)
  }

  /// Makes an input.
  package func bytes(_ random: inout SplitMix64) -> [UInt8] {
    if !pieces.isEmpty, random.chance(20) {
      return (0..<Int.random(in: 1...40, using: &random)).flatMap { _ in piece(&random) }
    }
    var bytes = corpus.randomElement(using: &random) ?? []
    for _ in 0..<Int.random(in: 1...maximumChanges, using: &random) { change(&bytes, &random) }
    return bytes
  }

  /// Changes bytes in one place.
  package func change(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
    let start = Int.random(in: 0...bytes.count, using: &random)
    let end = min(bytes.count, start + Int.random(in: 0...(random.chance(10) ? 200 : 12), using: &random))
    switch Int.random(in: 0..<8, using: &random) {
    case 0: bytes.removeSubrange(start..<end)
    case 1: bytes.replaceSubrange(start..<end, with: piece(&random))
    case 2: bytes.insert(contentsOf: bytes[start..<end], at: Int.random(in: 0...bytes.count, using: &random))
    case 3: bytes.insert(contentsOf: piece(&random), at: start)
    case 4: bytes.insert(Self.specialBytes.randomElement(using: &random) ?? 0, at: start)
    case 5 where start < bytes.count: bytes[start] = .random(in: 0...255, using: &random)
    case 6 where start < bytes.count: bytes[start] ^= 1 << Int.random(in: 0..<8, using: &random)
    default:
      // The end of another input: joins two valid halves.
      let other = corpus.randomElement(using: &random) ?? []
      bytes.replaceSubrange(start..., with: other.dropFirst(Int.random(in: 0...other.count, using: &random)))
    }
  }

  private func piece(_ random: inout SplitMix64) -> [UInt8] {
    pieces.randomElement(using: &random) ?? [.random(in: 0...255, using: &random)]
  }
}
