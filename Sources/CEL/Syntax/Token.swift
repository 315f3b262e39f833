/// A piece of the text.
struct Token {
  enum Kind: Equatable {
    case identifier(String)
    /// A name in backticks, only after a dot.
    case quoted(String)
    case int(UInt64)
    case uint(UInt64)
    case double(Double)
    case string(String)
    case bytes([UInt8])
    /// An operator or a bracket.
    case sign(String)
    case end
  }

  let kind: Kind
  /// Where it begins, in Unicode scalars.
  let offset: Int

  /// Whether it is a name in backticks.
  var isQuoted: Bool {
    if case .quoted = kind { true } else { false }
  }

  /// As messages show it.
  var text: String {
    switch kind {
    case .identifier(let name): "'\(name)'"
    case .quoted(let name): "'`\(name)`'"
    case .int(let number): "'\(number)'"
    case .uint(let number): "'\(number)u'"
    case .double(let number): "'\(number)'"
    case .string: "a string"
    case .bytes: "bytes"
    case .sign(let sign): "'\(sign)'"
    case .end: "the end of the expression"
    }
  }
}
