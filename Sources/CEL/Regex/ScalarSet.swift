/// A set of Unicode scalars.
struct ScalarSet: Sendable {
  /// Scalars of some general categories and ranges, or all others.
  struct Categories: Sendable {
    let members: Set<Unicode.GeneralCategory>
    var ranges: [ClosedRange<UInt32>] = []
    var isNegated = false
    /// True if a scalar is a member where another case of it is.
    var foldsCase = false

    func contains(_ scalar: Unicode.Scalar) -> Bool {
      guard foldsCase else { return holds(scalar) != isNegated }
      return CaseFolding.orbit(of: scalar).compactMap(Unicode.Scalar.init).contains(where: holds) != isNegated
    }

    private func holds(_ scalar: Unicode.Scalar) -> Bool {
      members.contains(scalar.properties.generalCategory) || ranges.contains { $0.contains(scalar.value) }
    }
  }

  private var ranges: [ClosedRange<UInt32>] = []
  private var categories: [Categories] = []
  var isNegated = false

  init() {}

  init(_ ranges: [ClosedRange<UInt32>], isNegated: Bool = false) {
    self.ranges = ranges
    self.isNegated = isNegated
  }

  init(_ scalar: Unicode.Scalar) { self.init([scalar.value...scalar.value]) }

  mutating func insert(_ range: ClosedRange<UInt32>) { ranges.append(range) }

  mutating func insert(_ categories: Categories) { self.categories.append(categories) }

  /// Adds all of `other`, which is not negated or has ranges only.
  mutating func insert(_ other: ScalarSet) {
    ranges += other.isNegated ? other.gaps : other.ranges
    categories += other.categories
  }

  /// What is between the ranges.
  private var gaps: [ClosedRange<UInt32>] {
    var gaps: [ClosedRange<UInt32>] = []
    var next: UInt32 = 0
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if range.lowerBound > next { gaps.append(next...(range.lowerBound - 1)) }
      next = max(next, range.upperBound + 1)
    }
    return next <= 0x10FFFF ? gaps + [next...0x10FFFF] : gaps
  }

  /// Adds the other cases of the ranges and categories, also of those that a negated set leaves out: `(?i)[^k]` does
  /// not contain the Kelvin sign. Returns how many scalars were folded.
  mutating func foldCase() -> Int {
    // What is between the gaps are the ranges, sorted and joined.
    ranges = ScalarSet(gaps).gaps
    var count = 0
    for range in ranges {
      let orbits = CaseFolding.orbits(in: range)
      count += orbits.count
      for orbit in orbits { ranges += orbit.filter { !range.contains($0) }.map { $0...$0 } }
    }
    ranges = ScalarSet(gaps).gaps
    for index in categories.indices { categories[index].foldsCase = true }
    return count
  }

  /// Returns true if `scalar` is a member.
  func contains(_ scalar: Unicode.Scalar) -> Bool {
    for range in ranges where range.contains(scalar.value) { return !isNegated }
    return categories.contains { $0.contains(scalar) } != isNegated
  }

  /// The scalar that alone is a member, nil when there are others.
  var only: Unicode.Scalar? {
    guard ranges.count == 1, ranges[0].count == 1, categories.isEmpty, !isNegated else { return nil }
    return Unicode.Scalar(ranges[0].lowerBound)
  }

  /// How many ranges and categories a test looks at.
  var size: Int { ranges.count + categories.count }
}
