/// Takes the parts of a date off the front of its text; each is nil, or false, where something else stands there.
struct DateReader {
  static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
  ]
  /// From Sunday.
  static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

  private var rest: Substring

  init(_ text: String) {
    rest = text[...]
  }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func skipSpaces() { rest = rest.drop(while: \.isWhitespace) }

  mutating func take(_ letter: Character) -> Bool {
    guard rest.first == letter else { return false }
    rest.removeFirst()
    return true
  }

  /// So many digits of ASCII, as many as there are.
  mutating func digits(_ count: ClosedRange<Int>) -> String? {
    let digits = rest.prefix(count.upperBound).prefix { $0.isASCII && $0.isNumber }
    guard digits.count >= count.lowerBound else { return nil }
    rest = rest[digits.endIndex...]
    return String(digits)
  }

  /// The place of a name in a list; it may be cut to three letters, in either case.
  mutating func name(_ names: [String]) -> Int? {
    let text = rest.lowercased()
    for length in [Int.max, 3] {
      guard let index = names.firstIndex(where: { text.hasPrefix($0.prefix(length).lowercased()) }) else { continue }
      rest = rest.dropFirst(names[index].prefix(length).count)
      return index
    }
    return nil
  }

  /// The seconds that clocks are ahead of UTC: `Z`, `+01`, `+0130`, `+01:30`.
  mutating func offset() -> Int? {
    skipSpaces()
    if take("Z") || take("z") { return 0 }
    let isBehind = take("-")
    guard isBehind || take("+"), let hours = digits(2...2).flatMap({ Int($0) }), hours < 24 else { return nil }
    let hasColon = take(":")
    let minutes = digits(2...2).flatMap { Int($0) }
    guard minutes != nil || !hasColon, minutes ?? 0 < 60 else { return nil }
    return (hours * 3_600 + (minutes ?? 0) * 60) * (isBehind ? -1 : 1)
  }
}
