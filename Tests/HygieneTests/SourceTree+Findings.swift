import Testing

/// Fails with all places of a fault, one a line.
func expectNone(_ places: [String], sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(places.isEmpty, "\(places.count):\n\(places.joined(separator: "\n"))", sourceLocation: sourceLocation)
}

extension SourceTree {
  /// A target of the package, with the targets of the package that it depends on.
  struct Target {
    let name: String
    var dependencies: [String] = []
  }

  /// Returns the targets that `Package.swift` declares, in its order.
  func targets() throws -> [Target] {
    let declaration = try Regex(#"\.(?:target|executableTarget|testTarget|systemLibrary)\("#)
    let quoted = try Regex(#"\.product\(.*?\)|"([A-Za-z-]+)""#)
    return manifest.split(separator: declaration).dropFirst().map { text in
      // Paths and settings follow the dependencies.
      let head = text.prefix { $0 != "]" }
      let names = head.matches(of: quoted).compactMap { $0.output[1].substring.map(String.init) }
      return Target(
        name: names.first ?? "", dependencies: text.contains("dependencies:") ? Array(names.dropFirst()) : [])
    }
  }

  /// Returns the places of stored properties of a file's types that other files of its module mention only in
  /// extensions of the same type.
  func propertiesForExtensions(of file: File) -> [String] {
    let others = (sources.filter { $0.module == file.module } + tests).filter { $0.path != file.path }
    var type: (name: String, extensions: [File]) = ("", [])
    return file.declarations.compactMap { declaration in
      let line = file.lines[declaration.line]
      if SwiftDeclaration.types.contains(declaration.keyword), line.first != " " {
        let isExempt = HouseRules.splitTypes[declaration.name] != nil
        type = (declaration.name, isExempt ? [] : others.filter { $0.extends(declaration.name) })
      }
      guard line.prefix(while: { $0 == " " }).count == 2, declaration.isStoredAndInternal(line),
        !type.extensions.isEmpty
      else { return nil }
      let users = others.filter { $0.words.contains(declaration.name) }
      let isSplit = !users.isEmpty && users.allSatisfy { user in type.extensions.contains { $0.path == user.path } }
      return isSplit ? "\(file.place(declaration.line)): \(type.name).\(declaration.name)" : nil
    }
  }
}

extension SwiftDeclaration {
  /// Returns true if it is a stored property that is visible in its whole module.
  fileprivate func isStoredAndInternal(_ line: Substring) -> Bool {
    let isComputed = line.contains("{") && !line.contains("didSet") && !line.contains(" = ")
    return ["var", "let"].contains(keyword) && lineCount == 1 && !isComputed
      && Set(modifiers).isDisjoint(with: ["private", "fileprivate", "static", "public", "package"])
  }
}

extension SourceTree.File {
  /// Returns true if the file extends a type.
  fileprivate func extends(_ type: String) -> Bool {
    declarations.contains { $0.keyword == "extension" && $0.name == type }
  }

  /// Returns the places of faults in the file's prose, each with its words.
  func places(_ findings: [Prose.Finding]) -> [String] { findings.map { "\(place($0.index)): \($0.words)" } }

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
  /// Returns true if it has more characters than that.
  func isLonger(than columns: Int) -> Bool { utf8.count > columns && unicodeScalars.count > columns }

  /// True if the whole line is a comment.
  var isComment: Bool { drop { $0 == " " }.hasPrefix("//") }

  /// The names in a line of code.
  var identifiers: [String] {
    split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init)
  }

  /// Its words, in lower case.
  var words: [String] {
    split { !$0.isLetter }.map { $0.lowercased() }
  }

  /// The targets of its Markdown links and images.
  var linkTargets: [Substring] {
    split(separator: "](", omittingEmptySubsequences: false).dropFirst().map { $0.prefix { $0 != ")" } }
  }

  /// The texts between single backticks.
  var codeSpans: [Substring] {
    let parts = split(separator: "`", omittingEmptySubsequences: false)
    return parts.indices.filter { $0 % 2 == 1 && $0 < parts.count - 1 }.map { parts[$0] }
  }
}
