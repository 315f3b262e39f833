extension RegexParser {
  /// `[…]`.
  mutating func bracketed() throws(RegexError) -> ScalarSet {
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
    guard take("]") else { throw fault("a set does not end") }
    set.isNegated = isNegated
    return try folded(set)
  }

  /// `[:alpha:]` or `[:^alpha:]`; nil when it is not closed and so stands for its characters.
  private mutating func posixSet() throws(RegexError) -> ScalarSet? {
    var end = index + 2
    while end < scalars.count, Lexer.isLetter(scalars[end]) || scalars[end] == "^" { end += 1 }
    guard end + 1 < scalars.count, scalars[end] == ":", scalars[end + 1] == "]" else { return nil }
    var name = String(String.UnicodeScalarView(scalars[(index + 2)..<end]))
    let isNegated = name.hasPrefix("^")
    if isNegated { name.removeFirst() }
    guard var set = ScalarSet.posix(name) else { throw fault("there is no set '[:\(name.prefix(20)):]'") }
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
    guard let scalar = peek() else { throw fault("a set does not end") }
    guard scalar != "\\" else { return try escapedScalar() }
    index += 1
    return scalar
  }
}
