/// A set of Unicode scalars.
struct ScalarSet: Sendable {
  /// Scalars of some general categories and ranges, or all others.
  struct Categories: Sendable {
    let members: Set<Unicode.GeneralCategory>
    var ranges: [ClosedRange<UInt32>] = []
    var isNegated = false

    func contains(_ scalar: Unicode.Scalar) -> Bool {
      let isMember = members.contains(scalar.properties.generalCategory)
      return (isMember || ranges.contains { $0.contains(scalar.value) }) != isNegated
    }
  }

  private var ranges: [ClosedRange<UInt32>] = []
  private var categories: [Categories] = []
  var isNegated = false
  var foldsCase = false

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

  /// Whether `scalar` is a member.
  func contains(_ scalar: Unicode.Scalar) -> Bool {
    if holds(scalar) { return !isNegated }
    guard foldsCase else { return isNegated }
    return ScalarSet.otherCases(scalar).contains(where: holds) != isNegated
  }

  private func holds(_ scalar: Unicode.Scalar) -> Bool {
    for range in ranges where range.contains(scalar.value) { return true }
    return categories.contains { $0.contains(scalar) }
  }

  /// The scalar that alone is a member, nil when there are others.
  var only: Unicode.Scalar? {
    guard ranges.count == 1, ranges[0].count == 1, categories.isEmpty, !isNegated, !foldsCase else { return nil }
    return Unicode.Scalar(ranges[0].lowerBound)
  }

  /// How many ranges and categories a test looks at.
  var size: Int { ranges.count + categories.count }

  /// The scalar's forms in upper and lower case that are one scalar.
  private static func otherCases(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
    if scalar.isASCII {
      guard Lexer.isLetter(scalar), scalar != "_" else { return [] }
      return [Unicode.Scalar(UInt8(scalar.value) ^ 0x20)]
    }
    return [scalar.properties.lowercaseMapping, scalar.properties.uppercaseMapping].compactMap { text in
      text.unicodeScalars.count == 1 ? text.unicodeScalars.first : nil
    }
  }
}
