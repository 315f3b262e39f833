/// Finds the intended name for a misspelt one.
package enum NearestName {
  /// The maximum number of characters of a name that is compared, because the cost grows with its square. Longer names
  /// get no advice.
  private static let longestName = 64

  /// Returns the name among `names` that differs from `name` in the fewest letters, whatever their case; nil if none
  /// differs in at most three letters, and at most half of the letters of `name`.
  package static func of(_ name: String, among names: some Sequence<String>) -> String? {
    let letters = Array(name.lowercased())
    guard letters.count <= longestName else { return nil }
    var nearest: (name: String, distance: Int)?
    for candidate in names {
      let other = Array(candidate.lowercased())
      guard other.count <= longestName else { continue }
      let distance = distance(other, letters)
      if distance < nearest?.distance ?? .max { nearest = (candidate, distance) }
    }
    guard let nearest, nearest.distance <= min(3, letters.count / 2) else { return nil }
    return nearest.name
  }

  /// Returns `; did you mean 'name'?`, to append to a message; an empty text if no name is near.
  package static func hint(for name: String, among names: some Sequence<String>) -> String {
    of(name, among: names).map { "; did you mean '\($0)'?" } ?? ""
  }

  /// Returns the number of letters that have to be inserted, removed or replaced (Levenshtein).
  private static func distance(_ left: [Character], _ right: [Character]) -> Int {
    var row = Array(0...right.count)
    for (index, letter) in left.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in right.indices {
        let above = row[column + 1]
        row[column + 1] = min(above + 1, row[column] + 1, diagonal + (letter == right[column] ? 0 : 1))
        diagonal = above
      }
    }
    return row[right.count]
  }
}
