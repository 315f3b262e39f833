/// Functions of a string that search its whole or change each of its characters.
enum StringFunctions {
  static let all = [contains, startsWith, endsWith, lowerAscii, upperAscii, trim, reverse]

  private static let contains = test("contains") { text, part in
    SubstringSearch(Array(part.utf8)).first(in: text.utf8) != nil
  }

  private static let startsWith = test("startsWith") { text, part in text.utf8.starts(with: part.utf8) }

  private static let endsWith = test("endsWith") { text, part in
    text.utf8.count >= part.utf8.count && text.utf8.suffix(part.utf8.count).elementsEqual(part.utf8)
  }

  private static let lowerAscii = change("lowerAscii") { text in
    String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }, as: UTF8.self)
  }

  private static let upperAscii = change("upperAscii") { text in
    String(decoding: text.utf8.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }, as: UTF8.self)
  }

  private static let trim = change("trim") { text in
    let start = text.unicodeScalars.drop { $0.properties.isWhitespace }
    guard let end = start.lastIndex(where: { !$0.properties.isWhitespace }) else { return "" }
    return String(String.UnicodeScalarView(start[...end]))
  }

  private static let reverse = change("reverse") { text in
    String(String.UnicodeScalarView(text.unicodeScalars.reversed()))
  }

  /// A function of a text and a part of it.
  private static func test(
    _ name: String, _ holds: @escaping @Sendable (String, String) -> Bool
  ) -> FunctionDefinition {
    FunctionDefinition(name, [([.string, .string], .bool)]) { (arguments, budget) throws(EvaluationError) in
      let (text, part) = (try arguments.string(0), try arguments.string(1))
      try budget.spend(bytes: text.utf8.count + part.utf8.count)
      return .bool(holds(text, part))
    }
  }

  /// A function of a text alone.
  private static func change(_ name: String, _ changed: @escaping @Sendable (String) -> String) -> FunctionDefinition {
    FunctionDefinition(name, [([.string], .string)]) { (arguments, budget) throws(EvaluationError) in
      let text = try arguments.string(0)
      try budget.spend(bytes: text.utf8.count * 2)
      return .string(changed(text))
    }
  }
}
