/// The prose of a file, line by line: the documentation comments of a source, the texts in its code, or a page.
struct Prose {
  /// A fault in a line.
  struct Finding: Equatable {
    /// The index of the line.
    let index: Int
    /// The words of the fault.
    let words: String
  }

  /// The prose of each line; empty if the line has none.
  private let lines: [Substring]
  /// The words of each line.
  private let words: [[String]]

  private init(_ lines: [Substring]) {
    self.lines = lines
    words = lines.map(\.words)
  }

  /// Creates the prose in the documentation comments of a source.
  init(documentationOf source: [Substring]) { self.init(source.map { $0.documentation ?? "" }) }

  /// Creates the prose in the code of a source, without its comments.
  init(codeOf source: [Substring]) { self.init(source.map { $0.isComment ? "" : $0 }) }

  /// Creates the prose of a page.
  init(page: [Substring]) { self.init(page) }

  /// Returns the first words of paragraphs that open with one of `words`.
  func openings(with words: Set<String>) -> [Finding] {
    lines.indices.compactMap { index in
      let isFirst = index == lines.startIndex || lines[index - 1].isEmpty
      let word = String(lines[index].prefix { $0.isLetter })
      return isFirst && words.contains(word) ? Finding(index: index, words: word) : nil
    }
  }

  /// Returns the places with one of `terms`, each of up to three words in lower case.
  func terms(_ terms: Set<String>) -> [Finding] {
    let byLastWord = Dictionary(grouping: terms) { String($0.split(separator: " ").last ?? "") }
    return lines.indices.flatMap { index -> [Finding] in
      let (words, own) = context(index)
      return own.flatMap { place -> [Finding] in
        let text = " " + words[...place].suffix(3).joined(separator: " ")
        return (byLastWord[words[place]] ?? []).filter { text.hasSuffix(" " + $0) }
          .map { Finding(index: index, words: $0) }
      }
    }
  }

  /// Returns the places with "no" after "is" or "are", where plain English has "not". Comparisons such as "no longer"
  /// do not count, nor, if `allowingThere`, does "no" after "there is": that is for prose, and not for messages.
  func denials(allowingThere: Bool) -> [Finding] {
    lines.indices.flatMap { index -> [Finding] in
      let (words, own) = context(index)
      return own.compactMap { place -> Finding? in
        guard words[place] == "no", place > 0, ["is", "are"].contains(words[place - 1]) else { return nil }
        let next = place + 1 < words.count ? words[place + 1] : ""
        let isExistence = place > 1 && words[place - 2] == "there"
        guard !HouseRules.comparatives.contains(next), !(allowingThere && isExistence) else { return nil }
        return Finding(index: index, words: "\(words[place - 1]) no \(next)")
      }
    }
  }

  /// Returns the words of a line between the last two of the line before and the first one of the line after, with the
  /// range of its own.
  private func context(_ index: Int) -> (words: [String], own: Range<Int>) {
    let before = index > lines.startIndex ? Array(words[index - 1].suffix(2)) : []
    let after = index + 1 < lines.endIndex ? Array(words[index + 1].prefix(1)) : []
    let own = words[index]
    return (before + own + after, before.count..<(before.count + own.count))
  }
}

extension Substring {
  /// The text of a documentation comment; nil if the line has none.
  var documentation: Substring? {
    let text = drop { $0 == " " }
    return text.hasPrefix("///") ? text.dropFirst(3).drop { $0 == " " } : nil
  }
}
