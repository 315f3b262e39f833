extension RegexParser {
  /// What is after `(?`. Whether a group follows: `(?i)` sets flags for what comes after it and is none.
  mutating func groupKind() throws(RegexError) -> Bool {
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
    throw fault("a group does not end")
  }

  private mutating func groupName() throws(RegexError) {
    let start = index
    while let scalar = peek(), Lexer.isLetter(scalar) || Lexer.isDigit(scalar) { index += 1 }
    guard index > start, take(">") else { throw fault("the name of a group holds letters, digits and '_'") }
  }

  /// What is after a backslash, outside of brackets.
  mutating func escaped() throws(RegexError) -> RegexNode {
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

  /// `\d`, `\pL` or `\p{Lu}` and their like; nil when something else is next.
  mutating func namedSet() throws(RegexError) -> ScalarSet? {
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
      throw fault("there is no general category '\(name.prefix(20))'")
    }
    set.insert(ScalarSet.Categories(members: members, isNegated: isNegated))
    return set
  }

  /// A character that is written with a backslash.
  mutating func escapedScalar() throws(RegexError) -> Unicode.Scalar {
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
}
