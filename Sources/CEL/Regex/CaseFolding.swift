/// The letters that are equal under `(?i)`, as in RE2: those with the same simple case folding, which is a mapping of
/// status C or S in Unicode's `CaseFolding.txt`. `K`, `k` and the Kelvin sign are one orbit, and `Σ`, `σ` and `ς` are
/// another.
///
/// The standard library has no case folding, but full case mappings. Joining each scalar to its mappings, and so to all
/// scalars with the same mapping, gives the same orbits, except for the dotless i.
struct CaseFolding: Sendable {
  /// The orbits of the standard library's version of Unicode, determined once per process in a few milliseconds.
  private static let shared = CaseFolding()

  /// All scalars with other cases, ascending, and the orbit of each.
  private let scalars: [UInt32]
  private let orbits: [[UInt32]]

  /// Returns the scalars that `scalar` matches, including itself, ascending.
  static func orbit(of scalar: Unicode.Scalar) -> [UInt32] {
    orbits(in: scalar.value...scalar.value).first ?? [scalar.value]
  }

  /// Returns the orbit of each scalar in `range` that has other cases.
  static func orbits(in range: ClosedRange<UInt32>) -> ArraySlice<[UInt32]> {
    shared.orbits[shared.place(of: range.lowerBound)..<shared.place(of: range.upperBound + 1)]
  }

  private init() {
    var joined = JoinedTexts()
    // No scalar beyond plane 1 has a case. The lowercase of U+0130 has two scalars, so that it is in an orbit of its
    // own.
    let cased = (UInt32(0)...0x1FFFF).compactMap(Unicode.Scalar.init).filter {
      $0.properties.changesWhenCaseMapped && $0 != "ı"
    }
    for scalar in cased {
      let properties = scalar.properties
      for mapping in [properties.lowercaseMapping, properties.uppercaseMapping, properties.titlecaseMapping] {
        joined.join([scalar.value], mapping.unicodeScalars.map(\.value))
      }
    }
    let sets = Dictionary(grouping: cased.map(\.value)) { joined.representative(of: [$0]) }
    let members = sets.values.filter { $0.count > 1 }.flatMap { orbit in orbit.map { (scalar: $0, orbit: orbit) } }
      .sorted { $0.scalar < $1.scalar }
    scalars = members.map(\.scalar)
    orbits = members.map(\.orbit)
  }

  /// Returns the index of the first scalar that is not below `value`.
  private func place(of value: UInt32) -> Int {
    var (low, high) = (0, scalars.count)
    while low < high {
      let middle = (low + high) / 2
      if scalars[middle] < value { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Disjoint sets of texts, as scalars, that were joined.
  private struct JoinedTexts {
    private var parents: [[UInt32]: [UInt32]] = [:]

    func representative(of text: [UInt32]) -> [UInt32] {
      var text = text
      while let parent = parents[text] { text = parent }
      return text
    }

    mutating func join(_ first: [UInt32], _ second: [UInt32]) {
      let (first, second) = (representative(of: first), representative(of: second))
      if first != second { parents[first] = second }
    }
  }
}
