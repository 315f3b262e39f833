package import Yams

/// What a scalar of YAML says by the core schema of YAML 1.2 (chapter 10.3): `yes` and `1_000` are texts, `010` is 10
/// and `0o17` is 15. Quotation marks make a text of everything, and so does the tag `!!str`.
package enum YAMLScalar: Hashable, Sendable {
  /// Nothing, `~` or `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// A whole number of 64 bits.
  case integer(Int64)
  /// Another number, as JSON reads it: a `number`, or `rounded` where a double cannot have it.
  case number(Value)
  /// The scalar's own text.
  case text
  /// A number that JSON does not have, or what is not of the kind that its tag says: why, as a sentence.
  case refused(String)

  /// Reads a scalar of a document that has just been read.
  package init(_ scalar: Node.Scalar) {
    let tag = scalar.tag.rawValue.replacing("tag:yaml.org,2002:", with: "")
    guard tag != "str", tag != "!" else {
      self = .text
      return
    }
    self = Self.plain(scalar.string)
    guard !tag.isEmpty else { return }
    switch (tag, self) {
    case (_, .refused), ("null", .null), ("bool", .bool), ("int", .integer), ("float", .number): break
    case ("float", .integer(let integer)): self = .number(.number(Double(integer)))
    default: self = .refused("'\(scalar.string)' is not what the tag !!\(tag) says")
    }
  }

  private static func plain(_ text: String) -> YAMLScalar {
    switch text {
    case "", "~", "null", "Null", "NULL": return .null
    case "true", "True", "TRUE": return .bool(true)
    case "false", "False", "FALSE": return .bool(false)
    default: break
    }
    if let digits = text.wholeMatch(of: /0o([0-7]+)/)?.1 { return integer(digits, radix: 8, text) }
    if let digits = text.wholeMatch(of: /0x([0-9a-fA-F]+)/)?.1 { return integer(digits, radix: 16, text) }
    if text.wholeMatch(of: /[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)/) != nil {
      return .refused("JSON has no number '\(text)'; a text needs quotation marks")
    }
    guard let match = text.wholeMatch(of: /[-+]?(\.[0-9]+|[0-9]+(?<fraction>\.[0-9]*)?)(?<exponent>[eE][-+]?[0-9]+)?/)
    else { return .text }
    // JSON knows which numbers with an exponent are whole.
    if let value = try? Value(json: text) {
      if case .integer(let integer) = value { return .integer(integer) }
      return .number(value)
    }
    if match.fraction == nil, match.exponent == nil, let integer = Int64(text) { return .integer(integer) }
    guard let number = Double(text), number.isFinite else { return .refused("the number '\(text)' is too large") }
    return .number(.number(number))
  }

  private static func integer(_ digits: Substring, radix: Int, _ text: String) -> YAMLScalar {
    Int64(digits, radix: radix).map(YAMLScalar.integer) ?? .refused("the number '\(text)' is too large")
  }
}
