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
