/// A set of Unicode scalars.
struct ScalarSet: Sendable {
  /// Scalars of some general categories and ranges, or all others.
  struct Categories: Sendable {
    let members: Set<Unicode.GeneralCategory>
    var ranges: [ClosedRange<UInt32>] = []
    var isNegated = false
    /// True if a scalar is also a member if another case of it is.
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

  /// The gaps between the ranges.
  private var gaps: [ClosedRange<UInt32>] {
    var gaps: [ClosedRange<UInt32>] = []
    var next: UInt32 = 0
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if range.lowerBound > next { gaps.append(next...(range.lowerBound - 1)) }
      next = max(next, range.upperBound + 1)
    }
    return next <= 0x10FFFF ? gaps + [next...0x10FFFF] : gaps
  }

  /// Adds the other cases of the ranges and categories, also of those that a negated set excludes: `(?i)[^k]` does not
  /// contain the Kelvin sign. Returns the number of scalars that were folded.
  mutating func foldCase() -> Int {
    // The gaps of the gaps are the ranges, sorted and joined.
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

  /// The only member; nil if there are others.
  var only: Unicode.Scalar? {
    guard ranges.count == 1, ranges[0].count == 1, categories.isEmpty, !isNegated else { return nil }
    return Unicode.Scalar(ranges[0].lowerBound)
  }

  /// The number of ranges and categories that a test examines.
  var size: Int { ranges.count + categories.count }

  // MARK: Named sets

  private static let digits = ScalarSet([0x30...0x39])
  private static let spaces = ScalarSet([0x09...0x0A, 0x0C...0x0D, 0x20...0x20])
  private static let words = ScalarSet([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])

  /// `\d`, `\s` and `\w` of Unicode (UTS #18, Compatibility Properties).
  private static let unicodeDigits = Categories(members: [.decimalNumber])
  private static let unicodeSpaces = Categories(
    members: [.spaceSeparator, .lineSeparator, .paragraphSeparator], ranges: [0x09...0x0D, 0x85...0x85])
  private static let unicodeWords = Categories(
    members: [
      .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark,
      .spacingMark, .enclosingMark, .decimalNumber, .letterNumber, .connectorPunctuation,
    ], ranges: [0x200C...0x200D])

  /// Returns true if a scalar is a word character, in all of Unicode.
  static func isWord(_ scalar: Unicode.Scalar) -> Bool { unicodeWords.contains(scalar) }

  /// Returns the set of `\d`, `\s`, `\w` and their opposites, of all of Unicode or of ASCII alone.
  static func perl(_ letter: Unicode.Scalar, isUnicode: Bool) -> ScalarSet? {
    let (ascii, unicode): (ScalarSet, Categories)
    switch letter {
    case "d", "D": (ascii, unicode) = (digits, unicodeDigits)
    case "s", "S": (ascii, unicode) = (spaces, unicodeSpaces)
    case "w", "W": (ascii, unicode) = (words, unicodeWords)
    default: return nil
    }
    var set = isUnicode ? ScalarSet() : ascii
    let isNegated = letter.value < 0x61
    if isUnicode {
      set.insert(Categories(members: unicode.members, ranges: unicode.ranges, isNegated: isNegated))
    } else {
      set.isNegated = isNegated
    }
    return set
  }

  /// Returns the set of `[:name:]`.
  static func posix(_ name: String) -> ScalarSet? {
    switch name {
    case "alnum": ScalarSet([0x30...0x39, 0x41...0x5A, 0x61...0x7A])
    case "alpha": ScalarSet([0x41...0x5A, 0x61...0x7A])
    case "ascii": ScalarSet([0...0x7F])
    case "blank": ScalarSet([0x09...0x09, 0x20...0x20])
    case "cntrl": ScalarSet([0...0x1F, 0x7F...0x7F])
    case "digit": digits
    case "graph": ScalarSet([0x21...0x7E])
    case "lower": ScalarSet([0x61...0x7A])
    case "print": ScalarSet([0x20...0x7E])
    case "punct": ScalarSet([0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E])
    case "space": ScalarSet([0x09...0x0D, 0x20...0x20])
    case "upper": ScalarSet([0x41...0x5A])
    case "word": words
    case "xdigit": ScalarSet([0x30...0x39, 0x41...0x46, 0x61...0x66])
    default: nil
    }
  }

  /// Returns the general categories that `\p{name}` names, such as `L` or `Lu`.
  static func categories(_ name: String) -> Set<Unicode.GeneralCategory>? {
    let all = categoriesByName.filter { $0.key.hasPrefix(name) && ($0.key == name || name.utf8.count == 1) }
    return all.isEmpty ? nil : Set(all.values)
  }

  private static let categoriesByName: [String: Unicode.GeneralCategory] = [
    "Lu": .uppercaseLetter, "Ll": .lowercaseLetter, "Lt": .titlecaseLetter, "Lm": .modifierLetter, "Lo": .otherLetter,
    "Mn": .nonspacingMark, "Mc": .spacingMark, "Me": .enclosingMark, "Nd": .decimalNumber, "Nl": .letterNumber,
    "No": .otherNumber, "Pc": .connectorPunctuation, "Pd": .dashPunctuation, "Ps": .openPunctuation,
    "Pe": .closePunctuation, "Pi": .initialPunctuation, "Pf": .finalPunctuation, "Po": .otherPunctuation,
    "Sm": .mathSymbol, "Sc": .currencySymbol, "Sk": .modifierSymbol, "So": .otherSymbol, "Zs": .spaceSeparator,
    "Zl": .lineSeparator, "Zp": .paragraphSeparator, "Cc": .control, "Cf": .format, "Cs": .surrogate,
    "Co": .privateUse, "Cn": .unassigned,
  ]
}
