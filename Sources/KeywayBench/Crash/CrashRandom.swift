/// A random number generator that gives the same numbers for the same seed (SplitMix64: Steele, Lea and Flood, 2014).
struct CrashRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// The numbers that belong to `seed`, and to a part of the test that has a number of its own.
  init(seed: UInt64, part: Int = 0) { state = seed &+ UInt64(truncatingIfNeeded: part) &* 0xD134_2543_DE82_EF95 }

  /// The next number.
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// Whether something happens that happens so many times in a hundred.
  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}
