/// Parses a pattern in the syntax of RE2. Captures are ignored, since patterns are only matched.
struct RegexParser {
  /// The maximum nesting depth of groups.
  private static let nestingLimit = 50
  /// The maximum count of a repetition, as in RE2.
  private static let countLimit = 1_000
  /// The maximum number of scalars with other cases that the sets of a pattern with `(?i)` may name: about 30 sets of
  /// all of Unicode.
  private static let foldingLimit = 100_000

  /// The flags that `(?ims)` sets.
  private struct Flags {
    var foldsCase = false
    var isMultiline = false
    var dotMatchesNewline = false
  }

  private let pattern: String
  /// True if `\d`, `\s`, `\w` and `\b` are those of Unicode; false if they are those of ASCII, as in RE2.
  private let isUnicode: Bool
  private let scalars: [Unicode.Scalar]
  private var index = 0
  private var flags = Flags()
  /// The number of scalars that were folded for `(?i)`.
  private(set) var foldedCount = 0
  private var nesting = 0

  init(_ pattern: String, isUnicode: Bool) {
    self.pattern = pattern
    self.isUnicode = isUnicode
    scalars = Array(pattern.unicodeScalars)
  }

  /// The whole pattern.
  mutating func parse() throws(RegexError) -> RegexNode {
    let node = try alternatives()
    guard peek() == nil else { throw fault("')' without '('") }
    return node
  }

  private func peek(_ ahead: Int = 0) -> Unicode.Scalar? {
    index + ahead < scalars.count ? scalars[index + ahead] : nil
  }

  private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
    guard peek() == scalar else { return false }
    index += 1
    return true
  }

  private func fault(_ message: String) -> RegexError { RegexError(message, in: pattern, at: index) }

  private mutating func alternatives() throws(RegexError) -> RegexNode {
    var branches = [try sequence()]
    while take("|") { branches.append(try sequence()) }
    return branches.count == 1 ? branches[0] : .alternatives(branches)
  }

  private mutating func sequence() throws(RegexError) -> RegexNode {
    var parts: [RegexNode] = []
    while let next = peek(), next != "|", next != ")" {
      if next == "\\", peek(1) == "Q" {
        var quoted = try quoted()
        if let last = quoted.popLast() { parts += quoted + [try repeated(last)] }
        continue
      }
      if next == "\\", peek(1) == "E" {
        index += 2
        continue
      }
      guard let atom = try atom() else { continue }
      parts.append(try repeated(atom))
    }
    return .sequence(parts)
  }

  /// `\Q…\E`.
  private mutating func quoted() throws(RegexError) -> [RegexNode] {
    index += 2
    var parts: [RegexNode] = []
    while let scalar = peek(), !(scalar == "\\" && peek(1) == "E") {
      parts.append(.set(try folded(ScalarSet(scalar))))
      index += 1
    }
    index = min(index + 2, scalars.count)
    return parts
  }

  /// `set`, and after `(?i)` all cases of its members.
  private mutating func folded(_ set: ScalarSet) throws(RegexError) -> ScalarSet {
    guard flags.foldsCase else { return set }
    var set = set
    foldedCount += set.foldCase()
    guard foldedCount <= RegexParser.foldingLimit else { throw fault("the sets after (?i) are too large") }
    return set
  }

  /// One character, set, group or assertion; nil for `(?i)`.
  private mutating func atom() throws(RegexError) -> RegexNode? {
    guard let scalar = peek() else { throw fault("the pattern ends too early") }
    switch scalar {
    case "(": return try group()
    case "[": return .set(try bracketed())
    case "\\": return try escaped()
    case "*", "+", "?": throw fault("nothing to repeat before '\(scalar)'")
    default: break
    }
    index += 1
    switch scalar {
    case ".":
      return .set(flags.dotMatchesNewline ? ScalarSet([0...0x10FFFF]) : ScalarSet([0x0A...0x0A], isNegated: true))
    case "^": return .assertion(flags.isMultiline ? .startOfLine : .startOfText)
    case "$": return .assertion(flags.isMultiline ? .endOfLine : .endOfText)
    default: return .set(try folded(ScalarSet(scalar)))
    }
  }

  /// A group with its contents, or nil for flags that hold until the end of the group around them.
  private mutating func group() throws(RegexError) -> RegexNode? {
    index += 1
    let outer = flags
    if take("?") {
      guard try groupKind() else { return nil }
    }
    nesting += 1
    guard nesting <= RegexParser.nestingLimit else { throw fault("groups are nested too deep") }
    let node = try alternatives()
    nesting -= 1
    guard take(")") else { throw fault("a group is not closed") }
    flags = outer
    return node
  }

  /// `*`, `+`, `?` or `{…}` after `node`, perhaps lazy, which makes no difference here.
  private mutating func repeated(_ node: RegexNode) throws(RegexError) -> RegexNode {
    var node = node
    var isRepeated = false
    while let (from, through) = try repetition() {
      guard !isRepeated else { throw fault("a repetition of a repetition") }
      isRepeated = true
      _ = take("?")
      node = .repetition(node, from: from, through: through)
    }
    return node
  }

  private mutating func repetition() throws(RegexError) -> (Int, Int?)? {
    if take("*") { return (0, nil) }
    if take("+") { return (1, nil) }
    if take("?") { return (0, 1) }
    guard peek() == "{" else { return nil }
    let start = index
    index += 1
    guard let from = number() else {
      index = start
      return nil
    }
    let isOpen = take(",")
    let through = isOpen ? number() : from
    guard take("}") else {
      index = start
      return nil
    }
    guard from <= RegexParser.countLimit, (through ?? from) <= RegexParser.countLimit, from <= through ?? from else {
      throw fault("a repetition count must be from 0 to \(RegexParser.countLimit)")
    }
    return (from, through)
  }

  private mutating func number() -> Int? {
    let digits = scalars[index...].prefix { Lexer.isDigit($0) }
    guard !digits.isEmpty else { return nil }
    index += digits.count
    return Int(String(String.UnicodeScalarView(digits))) ?? .max
  }

  // MARK: Groups, flags and escape sequences

  /// Reads what follows `(?`. Returns true if a group follows: `(?i)` sets flags for the rest and is not a group.
  private mutating func groupKind() throws(RegexError) -> Bool {
    if peek() == "P" || peek() == "<" {
      _ = take("P")
      guard take("<") else { throw fault("expected '<' and a name") }
      try groupName()
      return true
    }
    var isOn = true
    while let letter = peek() {
      index += 1
      switch letter {
      case "i": flags.foldsCase = isOn
      case "m": flags.isMultiline = isOn
      case "s": flags.dotMatchesNewline = isOn
      case "U": break
      case "-" where isOn: isOn = false
      case ":": return true
      case ")": return false
      default:
        index -= 1
        throw fault("'\(letter)' is not a flag")
      }
    }
    throw fault("a group is not closed")
  }

  private mutating func groupName() throws(RegexError) {
    let start = index
    while let scalar = peek(), Lexer.isLetter(scalar) || Lexer.isDigit(scalar) { index += 1 }
    guard index > start, take(">") else { throw fault("the name of a group holds letters, digits and '_'") }
  }

  /// Reads what follows a backslash, outside of brackets.
  private mutating func escaped() throws(RegexError) -> RegexNode {
    guard let letter = peek(1) else { throw fault("the pattern ends with a backslash") }
    let assertion: RegexAssertion?
    switch letter {
    case "A": assertion = .startOfText
    case "z": assertion = .endOfText
    case "b": assertion = .wordBoundary(isUnicode: isUnicode)
    case "B": assertion = .noWordBoundary(isUnicode: isUnicode)
    default: assertion = nil
    }
    if let assertion {
      index += 2
      return .assertion(assertion)
    }
    if let set = try namedSet() { return .set(try folded(set)) }
    return .set(try folded(ScalarSet(try escapedScalar())))
  }

  /// `\d`, `\pL`, `\p{Lu}` and similar sets; nil if anything else is next.
  private mutating func namedSet() throws(RegexError) -> ScalarSet? {
    guard peek() == "\\", let letter = peek(1) else { return nil }
    if let set = ScalarSet.perl(letter, isUnicode: isUnicode) {
      index += 2
      return set
    }
    guard letter == "p" || letter == "P" else { return nil }
    index += 2
    var name = ""
    var isNegated = letter == "P"
    if take("{") {
      if take("^") { isNegated.toggle() }
      while let scalar = peek(), scalar != "}" {
        name.unicodeScalars.append(scalar)
        index += 1
      }
      guard take("}") else { throw fault("expected '}'") }
    } else if let scalar = peek() {
      name.unicodeScalars.append(scalar)
      index += 1
    }
    var set = ScalarSet()
    guard !name.isEmpty, let members = ScalarSet.categories(name) else {
      throw fault("'\(name.prefix(20))' is not a general category")
    }
    set.insert(ScalarSet.Categories(members: members, isNegated: isNegated))
    return set
  }

  /// A character that is written with a backslash.
  private mutating func escapedScalar() throws(RegexError) -> Unicode.Scalar {
    guard let letter = peek(1) else { throw fault("the pattern ends with a backslash") }
    index += 2
    switch letter {
    case "a": return "\u{07}"
    case "f": return "\u{0C}"
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "v": return "\u{0B}"
    case "x": return try hexadecimal()
    case "0"..."7": return try octal(letter)
    default:
      guard letter.isASCII, !Lexer.isLetter(letter), !Lexer.isDigit(letter) else {
        throw fault("'\\\(letter)' is not an escape sequence")
      }
      return letter
    }
  }

  private mutating func hexadecimal() throws(RegexError) -> Unicode.Scalar {
    let isBraced = take("{")
    var digits = ""
    while let scalar = peek(), scalar.properties.isASCIIHexDigit, isBraced || digits.utf8.count < 2 {
      digits.unicodeScalars.append(scalar)
      index += 1
    }
    guard !isBraced || take("}"), isBraced || digits.utf8.count == 2, let value = UInt32(digits, radix: 16),
      let scalar = Unicode.Scalar(value)
    else { throw fault("'\\x' needs two hexadecimal digits, or some in braces") }
    return scalar
  }

  /// `\0`, `\012` and `\123`; `\1` would be a reference to a group, which a regular language does not have.
  private mutating func octal(_ first: Unicode.Scalar) throws(RegexError) -> Unicode.Scalar {
    var value = first.value - 0x30
    var count = 1
    while count < 3, let scalar = peek(), ("0"..."7").contains(scalar) {
      value = value * 8 + scalar.value - 0x30
      count += 1
      index += 1
    }
    guard first == "0" || count == 3, let scalar = Unicode.Scalar(value) else {
      throw fault("references to groups are not supported")
    }
    return scalar
  }

  // MARK: Brackets

  /// `[…]`.
  private mutating func bracketed() throws(RegexError) -> ScalarSet {
    index += 1
    var set = ScalarSet()
    let isNegated = take("^")
    var isFirst = true
    while let scalar = peek(), isFirst || scalar != "]" {
      isFirst = false
      if scalar == "[", peek(1) == ":", let named = try posixSet() {
        set.insert(try folded(named))
      } else if let named = try namedSet() {
        set.insert(try folded(named))
      } else {
        set.insert(try range())
      }
    }
    guard take("]") else { throw fault("a set is not closed") }
    set.isNegated = isNegated
    return try folded(set)
  }

  /// `[:alpha:]` or `[:^alpha:]`; nil if it is not closed and so stands for its characters.
  private mutating func posixSet() throws(RegexError) -> ScalarSet? {
    var end = index + 2
    while end < scalars.count, Lexer.isLetter(scalars[end]) || scalars[end] == "^" { end += 1 }
    guard end + 1 < scalars.count, scalars[end] == ":", scalars[end + 1] == "]" else { return nil }
    var name = String(String.UnicodeScalarView(scalars[(index + 2)..<end]))
    let isNegated = name.hasPrefix("^")
    if isNegated { name.removeFirst() }
    guard var set = ScalarSet.posix(name) else { throw fault("'[:\(name.prefix(20)):]' is not a character class") }
    index = end + 2
    set.isNegated = isNegated
    return set
  }

  /// One character, or two with a dash between.
  private mutating func range() throws(RegexError) -> ClosedRange<UInt32> {
    let first = try setScalar()
    guard peek() == "-", let next = peek(1), next != "]" else { return first.value...first.value }
    index += 1
    let last = try setScalar()
    guard first.value <= last.value else { throw fault("a range ends before it begins") }
    return first.value...last.value
  }

  private mutating func setScalar() throws(RegexError) -> Unicode.Scalar {
    guard let scalar = peek() else { throw fault("a set is not closed") }
    guard scalar != "\\" else { return try escapedScalar() }
    index += 1
    return scalar
  }
}

/// The syntax tree of a pattern.
indirect enum RegexNode {
  case set(ScalarSet)
  case assertion(RegexAssertion)
  case sequence([RegexNode])
  case alternatives([RegexNode])
  /// At least `from` and at most `through` times, or any number of times more.
  case repetition(RegexNode, from: Int, through: Int?)
}

/// A condition on the place between two characters.
enum RegexAssertion: Sendable {
  case startOfText
  case endOfText
  case startOfLine
  case endOfLine
  case wordBoundary(isUnicode: Bool)
  case noWordBoundary(isUnicode: Bool)

  /// Returns true if it holds between `previous` and `next`, which are nil at the ends of the text.
  func holds(_ previous: Unicode.Scalar?, _ next: Unicode.Scalar?) -> Bool {
    switch self {
    case .startOfText: previous == nil
    case .endOfText: next == nil
    case .startOfLine: previous == nil || previous == "\n"
    case .endOfLine: next == nil || next == "\n"
    case .wordBoundary(let isUnicode):
      RegexAssertion.isWord(previous, isUnicode) != RegexAssertion.isWord(next, isUnicode)
    case .noWordBoundary(let isUnicode):
      RegexAssertion.isWord(previous, isUnicode) == RegexAssertion.isWord(next, isUnicode)
    }
  }

  private static func isWord(_ scalar: Unicode.Scalar?, _ isUnicode: Bool) -> Bool {
    guard let scalar else { return false }
    return isUnicode ? ScalarSet.isWord(scalar) : Lexer.isLetter(scalar) || Lexer.isDigit(scalar)
  }
}

/// The reason why a pattern is not a regular expression.
package struct RegexError: Error, Equatable {
  /// The description of the fault, with the pattern and the position.
  package let message: String

  init(_ message: String, in pattern: String, at offset: Int) {
    self.message = "pattern '\(pattern.prefix(60))', character \(offset + 1): \(message)"
  }
}
