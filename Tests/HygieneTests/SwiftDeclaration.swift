/// A declaration of a Swift file, found by the layout of `swift format`: it ends with the first closing brace below its
/// first letter.
struct SwiftDeclaration: Sendable {
  /// `struct`, `extension`, `func`, `init`, …
  let keyword: String
  /// The name that is declared or extended, with its outer types.
  let name: String
  let modifiers: [String]
  /// The index of the first line.
  let line: Int
  /// The number of its lines; 1 for a declaration without a body.
  let lineCount: Int

  static let types: Set<String> = ["struct", "class", "enum", "actor", "extension", "protocol", "typealias"]
  static let functions: Set<String> = ["func", "init", "deinit", "subscript", "var"]
  private static let others: Set<String> = ["let", "case", "import", "associatedtype", "operator"]
  private static let modifiers: Set<String> = [
    "package", "public", "private", "fileprivate", "internal", "open", "final", "static", "mutating", "nonmutating",
    "override", "required", "convenience", "lazy", "weak", "unowned", "indirect", "nonisolated", "isolated", "async",
    "consuming", "borrowing", "prefix", "postfix", "infix", "dynamic", "optional",
  ]

  /// Returns all declarations of a file, nested ones too, in order.
  static func all(in lines: [Substring]) -> [SwiftDeclaration] {
    lines.indices.compactMap { SwiftDeclaration(lines, at: $0) }
  }

  private init?(_ lines: [Substring], at line: Int) {
    let indentation = lines[line].prefix { $0 == " " }.count
    var rest = Self.withoutAttributes(lines[line].dropFirst(indentation))
    var modifiers: [String] = []
    while true {
      let word = rest.prefix { $0.isLetter }
      let isClassMember = word == "class" && rest.hasPrefix("class func")
      guard Self.modifiers.contains(String(word)) || isClassMember else { break }
      modifiers.append(String(word))
      rest = rest.dropFirst(word.count)
      if rest.first == "(", let end = rest.firstIndex(of: ")") { rest = rest[rest.index(after: end)...] }
      guard rest.first == " " else { return nil }
      rest = rest.dropFirst()
    }
    let keyword = String(rest.prefix { $0.isLetter })
    rest = rest.dropFirst(keyword.count)
    let isKnown = Self.types.contains(keyword) || Self.functions.contains(keyword) || Self.others.contains(keyword)
    guard isKnown, rest.first.map({ " (?<{".contains($0) }) ?? false else { return nil }
    self.keyword = keyword
    self.modifiers = modifiers
    name = String(rest.drop { $0 == " " }.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." })
    self.line = line
    lineCount = Self.lineCount(lines, from: line, indentation: indentation)
  }

  /// Returns a line without its leading attributes: `@Test("…") func` is a function.
  private static func withoutAttributes(_ text: Substring) -> Substring {
    var rest = text
    while rest.first == "@" {
      rest = rest.drop { $0 != " " && $0 != "(" }
      if rest.first == "(" {
        var depth = 0
        rest = rest.drop { character in
          if character == "(" { depth += 1 }
          if character == ")" { depth -= 1 }
          return depth > 0
        }.dropFirst()
      }
      rest = rest.drop { $0 == " " }
    }
    return rest
  }

  private static func lineCount(_ lines: [Substring], from first: Int, indentation: Int) -> Int {
    for index in lines.index(after: first)..<lines.endIndex {
      let line = lines[index]
      let depth = line.prefix { $0 == " " }.count
      guard depth <= indentation, depth < line.count else { continue }
      let rest = line.dropFirst(depth)
      if depth < indentation { return 1 }
      if rest.first == "}" { return index - first + 1 }
      // A signature over several lines continues with its closing parenthesis or its conditions.
      guard [")", "where ", "{", "#"].contains(where: rest.hasPrefix) else { return 1 }
    }
    return 1
  }
}
