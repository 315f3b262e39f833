import ArgumentParser

/// How the columns or members of a file, and their values, are taken.
struct FieldOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      The key of a column or member that is named otherwise; column= leaves it out. A column without a name is called \
      by its number.
      """, valueName: "column=key"))
  var map: [String] = []

  @Option(
    help: ArgumentHelp(
      "The entity of a relationship whose column or member has ids only; may be repeated.", valueName: "column=Entity"))
  var reference: [String] = []

  @Option(
    help: ArgumentHelp("A text that stands for no value, such as NULL or \\N; may be repeated.", valueName: "text"))
  var null: [String] = []

  @Option(
    name: .customLong("true"),
    help: ArgumentHelp("What else than true means true, in letters of either case; may be repeated.", valueName: "text")
  )
  var trueTexts: [String] = []

  @Option(
    name: .customLong("false"),
    help: ArgumentHelp("What else than false means false; may be repeated.", valueName: "text"))
  var falseTexts: [String] = []

  @Option(help: ArgumentHelp("The sign before the fraction of numbers: . or a comma.", valueName: "sign"))
  var decimal = "."

  @Option(help: ArgumentHelp("The sign between groups of three digits.", valueName: "sign"))
  var thousands: String?

  @Option(
    help: ArgumentHelp(
      """
      How dates are written in the file, as for strptime(3), with %f for a fraction of a second and %Q for \
      milliseconds since 1970; UTC unless %z reads an offset (default: RFC 3339).
      """, valueName: "format"),
    transform: { try DateFormat($0) })
  var dateFormat: DateFormat?

  /// The keys of renamed columns; of a column that comes twice, the last holds.
  var renames: [String: String] { Self.pairs(map) }

  /// The entities of columns with ids; of a column that comes twice, the last holds.
  var references: [String: String] { Self.pairs(reference) }

  /// How the values are written.
  var rules: FieldRules {
    var rules = FieldRules()
    rules.nulls = Set(null)
    rules.trueTexts.formUnion(trueTexts.map { $0.lowercased() })
    rules.falseTexts.formUnion(falseTexts.map { $0.lowercased() })
    rules.numbers = DecimalText.Style(point: decimal.first ?? ".", thousands: thousands?.first)
    rules.dateFormat = dateFormat
    return rules
  }

  private static func pairs(_ assignments: [String]) -> [String: String] {
    let pairs = assignments.map {
      $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    }
    return Dictionary(pairs.map { ($0[0], $0[1]) }, uniquingKeysWith: { _, last in last })
  }

  func validate() throws {
    for entry in map where !entry.contains("=") || entry.hasPrefix("=") {
      throw ValidationError("--map is written column=key, not \(entry)")
    }
    for entry in reference where !entry.contains("=") || entry.hasPrefix("=") || entry.hasSuffix("=") {
      throw ValidationError("--reference is written column=Entity, not \(entry)")
    }
    if let text = rules.trueTexts.intersection(rules.falseTexts).min() {
      throw ValidationError("\(text) means true and false")
    }
    guard [".", ","].contains(decimal) else { throw ValidationError("--decimal is . or a comma") }
    if let thousands {
      guard thousands.count == 1, let sign = thousands.first, !sign.isNumber, !sign.isLetter, !"+-".contains(sign)
      else {
        throw ValidationError("--thousands is one character, no letter or digit")
      }
      guard thousands != decimal else {
        throw ValidationError("--thousands is the sign before the fraction; --decimal names another")
      }
    }
  }
}
