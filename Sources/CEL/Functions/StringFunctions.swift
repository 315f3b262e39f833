/// Functions of a string that search its whole or change each of its characters.
enum StringFunctions {
  static let all: [FunctionDefinition] =
    [contains, startsWith, endsWith, lowerAscii, upperAscii, trim, reverse] + SubstringFunctions.all
    + JoiningFunctions.all

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

/// Functions of a string's characters by their positions, which are counted in Unicode scalars.
private enum SubstringFunctions {
  static let all = [charAt, indexOf, lastIndexOf, substring]

  private static let charAt = FunctionDefinition(
    "charAt", [([.string, .int], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let scalars = try scalars(arguments.string(0), &budget)
    let index = try checked(arguments.int(1), scalars.count)
    return .string(index == scalars.count ? "" : String(scalars[index]))
  }

  private static let indexOf = FunctionDefinition(
    "indexOf", [([.string, .string], .int), ([.string, .string, .int], .int)]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, part) = (try arguments.string(0), try arguments.string(1))
    let (scalars, needle) = (try scalars(text, &budget), try scalars(part, &budget))
    let start = try place(arguments, scalars.count) ?? 0
    return .int(Int64(SubstringSearch(needle).first(in: scalars, from: start) ?? -1))
  }

  private static let lastIndexOf = FunctionDefinition(
    "lastIndexOf", [([.string, .string], .int), ([.string, .string, .int], .int)]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, part) = (try arguments.string(0), try arguments.string(1))
    let (scalars, needle) = (try scalars(text, &budget), try scalars(part, &budget))
    let end = try place(arguments, scalars.count) ?? scalars.count
    if needle.isEmpty { return .int(Int64(end)) }
    var last = -1
    SubstringSearch(needle).forEachMatch(in: scalars) { place in
      if place <= end { last = place }
      return place < end
    }
    return .int(Int64(last))
  }

  private static let substring = FunctionDefinition(
    "substring", [([.string, .int], .string), ([.string, .int, .int], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let scalars = try scalars(arguments.string(0), &budget)
    let start = try checked(arguments.int(1), scalars.count)
    let end = try place(arguments, scalars.count) ?? scalars.count
    guard start <= end else { throw .invalid("substring(): the start \(start) is after the end \(end)") }
    return .string(String(String.UnicodeScalarView(scalars[start..<end])))
  }

  private static func scalars(
    _ text: String, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> [Unicode.Scalar] {
    try budget.spend(bytes: text.utf8.count * 4)
    return Array(text.unicodeScalars)
  }

  /// Returns the third argument as a position; nil if there is none.
  private static func place(_ arguments: FunctionArguments, _ count: Int) throws(EvaluationError) -> Int? {
    guard let place = try arguments.optionalInt(2) else { return nil }
    return try checked(place, count)
  }

  private static func checked(_ place: Int64, _ count: Int) throws(EvaluationError) -> Int {
    guard let index = Int(exactly: place), (0...count).contains(index) else {
      throw .invalid("position \(place) is out of range in a string of \(count) characters")
    }
    return index
  }
}

/// Functions that split and join strings.
private enum JoiningFunctions {
  static let all = [join, replace, split]

  private static let join = FunctionDefinition(
    "join", [([.list(.string)], .string), ([.list(.string), .string], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let list = try arguments.list(0)
    let separator = try arguments.count > 1 ? arguments.string(1) : ""
    var joined = ""
    for index in 0..<list.count {
      guard case .string(let part) = try list.element(at: index) else { throw arguments.mismatch }
      try budget.spend(bytes: part.utf8.count + separator.utf8.count)
      if index > 0 { joined += separator }
      joined += part
    }
    return .string(joined)
  }

  private static let replace = FunctionDefinition(
    "replace", [([.string, .string, .string], .string), ([.string, .string, .string, .int], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, old, new) = (try arguments.string(0), try arguments.string(1), try arguments.string(2))
    let limit = try arguments.optionalInt(3)
    let pieces = try pieces(of: text, by: old, limit: limit.map { $0 < 0 ? $0 : $0.saturatingSuccessor }, &budget)
    // The empty text occurs before and after each character.
    let isBetween = old.isEmpty
    let edges = isBetween ? min(pieces.count + 1, limit.flatMap { $0 < 0 ? nil : Int(clamping: $0) } ?? .max) : 0
    try budget.spend(bytes: text.utf8.count)
    try budget.spend(cost: new.utf8.count / EvaluationBudget.bytesPerUnit + 1, times: max(pieces.count - 1, edges))
    guard isBetween else { return .string(pieces.joined(separator: new)) }
    return .string(surrounded(text, new, edges))
  }

  /// Returns `text` with `new` inserted before its first characters, and after the last, `count` times in total.
  private static func surrounded(_ text: String, _ new: String, _ count: Int) -> String {
    var result = ""
    var left = count
    for scalar in text.unicodeScalars {
      if left > 0 { result += new }
      left -= 1
      result.unicodeScalars.append(scalar)
    }
    return left > 0 ? result + new : result
  }

  private static let split = FunctionDefinition(
    "split", [([.string, .string], .list(.string)), ([.string, .string, .int], .list(.string))]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, separator) = (try arguments.string(0), try arguments.string(1))
    let limit = try arguments.optionalInt(2)
    return .list(try pieces(of: text, by: separator, limit: limit, &budget).map { .string($0) })
  }

  /// Returns the parts of `text` between separators, at most `limit` if that is not negative, the last with all the
  /// rest. With an empty separator these are the characters.
  private static func pieces(
    of text: String, by separator: String, limit: Int64?, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> [String] {
    let most = limit.flatMap { $0 < 0 ? nil : Int(clamping: $0) } ?? .max
    try budget.spend(bytes: text.utf8.count + separator.utf8.count)
    guard most > 0 else { return [] }
    let (bytes, needle) = (Array(text.utf8), Array(separator.utf8))
    var ends: [(end: Int, next: Int)] = []
    if needle.isEmpty {
      var place = 0
      for scalar in text.unicodeScalars.dropLast() where ends.count < most - 1 {
        place += UTF8.width(scalar)
        ends.append((place, place))
      }
    } else {
      var next = 0
      SubstringSearch(needle).forEachMatch(in: bytes) { place in
        guard place >= next else { return true }
        guard ends.count < most - 1 else { return false }
        next = place + needle.count
        ends.append((place, next))
        return true
      }
    }
    if needle.isEmpty, bytes.isEmpty { return [] }
    try budget.spend(ends.count + 1)
    var start = 0
    var pieces: [String] = []
    for (end, next) in ends {
      pieces.append(String(decoding: bytes[start..<end], as: UTF8.self))
      start = next
    }
    return pieces + [String(decoding: bytes[start...], as: UTF8.self)]
  }
}

extension Int64 {
  fileprivate var saturatingSuccessor: Int64 { self == .max ? self : self + 1 }
}

extension EvaluationBudget {
  /// Spends `times` times `cost`.
  fileprivate mutating func spend(cost: Int, times: Int) throws(EvaluationError) {
    let (total, overflow) = cost.multipliedReportingOverflow(by: times)
    try spend(overflow ? .max : total)
  }
}

/// Finds a sequence in another in time proportional to their lengths (Knuth, Morris and Pratt, 1977).
private struct SubstringSearch<Element: Equatable> {
  private let needle: [Element]
  /// For each length of a matched prefix, the length of its longest border.
  private let borders: [Int]

  init(_ needle: [Element]) {
    self.needle = needle
    var borders = Array(repeating: 0, count: needle.count)
    var matched = 0
    for index in needle.indices.dropFirst() {
      while matched > 0, needle[index] != needle[matched] { matched = borders[matched - 1] }
      if needle[index] == needle[matched] { matched += 1 }
      borders[index] = matched
    }
    self.borders = borders
  }

  /// Calls `found` with the position of each occurrence from `start` on, until it returns false. An empty needle, which
  /// occurs everywhere, is left to the caller.
  func forEachMatch(in haystack: some Collection<Element>, from start: Int = 0, _ found: (Int) -> Bool) {
    guard !needle.isEmpty else { return }
    var matched = 0
    var index = start
    for element in haystack.dropFirst(start) {
      while matched > 0, element != needle[matched] { matched = borders[matched - 1] }
      if element == needle[matched] { matched += 1 }
      index += 1
      if matched == needle.count {
        guard found(index - needle.count) else { return }
        matched = borders[matched - 1]
      }
    }
  }

  /// Returns the position of the first occurrence from `start` on; nil if there is none.
  func first(in haystack: some Collection<Element>, from start: Int = 0) -> Int? {
    if needle.isEmpty { return start <= haystack.count ? start : nil }
    var first: Int?
    forEachMatch(in: haystack, from: start) { place in
      first = place
      return false
    }
    return first
  }
}

/// `strings.quote(text)`: the text as a literal.
enum QuoteFunction {
  static let quote = FunctionDefinition(
    "strings.quote", [([.string], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let text = try arguments.string(0)
    try budget.spend(bytes: text.utf8.count * 2)
    return .string("\"" + text.unicodeScalars.map(escaped).joined() + "\"")
  }

  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\u{07}": "\\a"
    case "\u{08}": "\\b"
    case "\u{0C}": "\\f"
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    case "\u{0B}": "\\v"
    case "\\": "\\\\"
    case "\"": "\\\""
    default: String(scalar)
    }
  }
}

/// `matches(text, pattern)` and `text.matches(pattern)`, with the syntax of RE2.
enum MatchFunction {
  static let matches = FunctionDefinition(
    "matches", [([.string, .string], .bool)]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, pattern) = (try arguments.string(0), try arguments.string(1))
    try budget.spend(pattern.utf8.count)
    let program: RegexProgram
    do throws(RegexError) { program = try RegexProgram(pattern) } catch { throw .invalid(error.message) }
    try budget.spend(program.cost)
    return .bool(try RegexMachine.matches(program, text, &budget))
  }
}
