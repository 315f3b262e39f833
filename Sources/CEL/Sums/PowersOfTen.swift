/// Powers of ten that are exact.
enum PowersOfTen {
  private static let integers: [Int128] = (0..<38).map { exponent in
    (0..<exponent).reduce(Int128(1)) { power, _ in power * 10 }
  }

  /// 10^`exponent` as an integer of 128 bits, nil when it is none.
  static func small(_ exponent: Int) -> Int128? {
    integers.indices.contains(exponent) ? integers[exponent] : nil
  }
}
