import Testing

/// Fails with all places of a fault, one a line.
func expectNone(_ places: [String], sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(places.isEmpty, "\(places.count):\n\(places.joined(separator: "\n"))", sourceLocation: sourceLocation)
}

extension SourceTree.File {
  /// The places of words that `HouseRules` avoids.
  var avoidedWords: [String] {
    lines.indices.compactMap { index in
      let words = lines[index].words
      let text = words.joined(separator: " ")
      guard
        let found = words.first(where: HouseRules.avoidedWords.contains)
          ?? HouseRules.avoidedPhrases.first(where: text.contains)
      else { return nil }
      return "\(place(index)): \(found)"
    }
  }
}

extension Substring {
  /// Whether it has more characters than that.
  func isLonger(than columns: Int) -> Bool { utf8.count > columns && unicodeScalars.count > columns }

  /// Its words, in lower case.
  var words: [String] {
    split { !$0.isLetter }.map { $0.lowercased() }
  }

  /// What stands between single backticks.
  var codeSpans: [Substring] {
    let parts = split(separator: "`", omittingEmptySubsequences: false)
    return parts.indices.filter { $0 % 2 == 1 && $0 < parts.count - 1 }.map { parts[$0] }
  }
}
