/// Reads a pattern in the syntax of RE2. What it captures does not matter, since patterns are only matched.
struct RegexParser {
  /// How deep groups may be nested.
  private static let nestingLimit = 50
  /// The most times that a repetition may be counted, as in RE2.
  private static let countLimit = 1_000
  /// The most scalars with other cases that the sets of a pattern with `(?i)` may name: some 30 sets of all of Unicode.
  private static let foldingLimit = 100_000

  /// What `(?ims)` changes.
  struct Flags {
    var foldsCase = false
    var isMultiline = false
    var dotMatchesNewline = false
  }

  let pattern: String
  /// Whether `\d`, `\s`, `\w` and `\b` are those of Unicode, not of ASCII as in RE2.
  let isUnicode: Bool
  let scalars: [Unicode.Scalar]
  var index = 0
  var flags = Flags()
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

  func peek(_ ahead: Int = 0) -> Unicode.Scalar? {
    index + ahead < scalars.count ? scalars[index + ahead] : nil
  }

  mutating func take(_ scalar: Unicode.Scalar) -> Bool {
    guard peek() == scalar else { return false }
    index += 1
    return true
  }

  func fault(_ message: String) -> RegexError { RegexError(message, in: pattern, at: index) }

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
  mutating func folded(_ set: ScalarSet) throws(RegexError) -> ScalarSet {
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
    guard take(")") else { throw fault("a group does not end") }
    flags = outer
    return node
  }

  /// `*`, `+`, `?` or `{…}` after `node`, and whether it is lazy, which makes no difference here.
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
      throw fault("a repetition is counted from 0 to \(RegexParser.countLimit)")
    }
    return (from, through)
  }

  private mutating func number() -> Int? {
    let digits = scalars[index...].prefix { Lexer.isDigit($0) }
    guard !digits.isEmpty else { return nil }
    index += digits.count
    return Int(String(String.UnicodeScalarView(digits))) ?? .max
  }
}
