#if canImport(Glibc)
  import Glibc
#endif

/// Tries a check on random inputs, one after the other, until it complains.
///
/// In the suite so many rounds are run, and with `KEYWAY_FUZZ_SECONDS` as many as fit into that time. Each round has
/// randomness of its own, of the run's seed and its number, so that `KEYWAY_TEST_SEED` and `KEYWAY_FUZZ_ROUND` repeat
/// the one that failed. `KEYWAY_FUZZ_TRACE=1` prints each input before it is tried, for those that end the process.
package struct Fuzzer {
  /// A complaint, with all that is needed to repeat it.
  package struct Failure: CustomStringConvertible, Sendable {
    /// The fuzzer, the seed and the round, the complaint, and the input.
    package let description: String
  }

  private let name: String
  private let rounds: Int
  private let seconds: Double?
  private let firstRound: Int
  private let isTraced: Bool

  /// A fuzzer that is called `name` in what it prints, and that runs so many rounds in the suite.
  package init(_ name: String, rounds: Int) {
    func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    self.name = name
    self.rounds = rounds
    seconds = variable("KEYWAY_FUZZ_SECONDS").flatMap(Double.init)
    firstRound = variable("KEYWAY_FUZZ_ROUND").flatMap(Int.init) ?? 0
    isTraced = variable("KEYWAY_FUZZ_TRACE") == "1"
  }

  /// Runs the rounds: `make` makes an input, `check` tries it and gives what is wrong, nil where nothing is. Gives the
  /// first complaint; an error that `check` throws is one.
  package func run<Input>(
    make: (inout SplitMix64) -> Input, describe: (Input) -> String, check: (Input) throws -> String?
  ) -> Failure? {
    let end = seconds.map { Self.now() + $0 }
    var round = firstRound
    defer { print("\(name): \(round - firstRound) rounds with KEYWAY_TEST_SEED=\(seed)") }
    while end.map({ Self.now() < $0 }) ?? (round < firstRound + rounds) {
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

  private static func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
