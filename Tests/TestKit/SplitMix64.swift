import Glibc

/// A random number generator that produces the same numbers for the same seed (Steele, Lea and Flood, 2014).
package struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Creates the generator of `seed`, and of one of several parts that each need numbers of their own.
  package init(seed: UInt64, part: UInt64 = 0) { state = seed &+ part &* 0xD134_2543_DE82_EF95 }

  /// Returns the next number.
  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// Returns true with a probability of `percent` in a hundred.
  package mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// The seed of this run: `KEYWAY_TEST_SEED`, or a number that differs from run to run. It is printed when it is first
/// used, and every random test prints it with its failures.
package let seed: UInt64 = {
  let given = getenv("KEYWAY_TEST_SEED").flatMap { UInt64(String(cString: $0)) }
  let seed = given ?? .random(in: 0..<1_000_000_000)
  let line = "KEYWAY_TEST_SEED=\(seed)\n"
  write(STDERR_FILENO, line, line.utf8.count)
  return seed
}()
