/// How text looks on a terminal.
struct TextStyle: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let bold = TextStyle(rawValue: 1)
  static let dim = TextStyle(rawValue: 2)
  static let underlined = TextStyle(rawValue: 4)
  static let inverse = TextStyle(rawValue: 8)
  static let green = TextStyle(rawValue: 16)
  static let yellow = TextStyle(rawValue: 32)
  static let red = TextStyle(rawValue: 64)
  /// Those that are colours, and not another weight or ground.
  static let colours: TextStyle = [.green, .yellow, .red]

  private static let codes: [(style: TextStyle, code: Int)] = [
    (.bold, 1), (.dim, 2), (.underlined, 4), (.inverse, 7), (.green, 32), (.yellow, 33), (.red, 31),
  ]

  /// The escape sequence that switches the style on (ECMA-48 §8.3.117); empty for plain text.
  var sequence: String {
    guard !isEmpty else { return "" }
    let codes = Self.codes.filter { contains($0.style) }.map { String($0.code) }
    return "\u{1B}[" + codes.joined(separator: ";") + "m"
  }

  /// The escape sequence that switches all styles off.
  static let reset = "\u{1B}[0m"
}
