internal import KeyValueModel

extension Settings {
  /// The settings as a configuration file, each with a comment that says where its value comes from.
  func rendered() -> String {
    rendered { definition in origins[definition.name].map { "\($0)" } ?? "default" }
  }

  /// The settings as a configuration file, each with the comment that `comment` gives. Settings of one group stand
  /// together under its name.
  func rendered(comment: (SettingDefinition) -> String) -> String {
    var lines: [(text: String, comment: String?)] = []
    var group: Substring?
    for definition in SettingsTable.all {
      let parts = definition.name.split(separator: ".", maxSplits: 1)
      let value = Self.yaml(definition.kind.value(in: self))
      if parts.count == 1 {
        lines.append(("\(definition.name): \(value)", comment(definition)))
        group = nil
      } else {
        if group != parts[0] { lines.append(("\(parts[0]):", nil)) }
        lines.append(("  \(parts[1]): \(value)", comment(definition)))
        group = parts[0]
      }
    }
    return lines.map(Self.line).joined()
  }

  private static func line(_ line: (text: String, comment: String?)) -> String {
    guard let comment = line.comment else { return line.text + "\n" }
    let gap = String(repeating: " ", count: max(2, 32 - line.text.count))
    return "\(line.text)\(gap)# \(comment)\n"
  }

  private static func yaml(_ value: SettingValue) -> String {
    switch value {
    case .integer(let integer): String(integer)
    case .text(let text), .untyped(let text), .other(let text): isPlain(text) ? text : Value.string(text).json
    case .list(let elements): "[" + elements.map { Value.string($0).json }.joined(separator: ", ") + "]"
    }
  }

  /// Whether YAML takes the text for a text without quotation marks; when in doubt, not. Every JSON string is YAML.
  private static func isPlain(_ text: String) -> Bool {
    let words: Set<String> = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
    guard !words.contains(text.lowercased()) else { return false }
    let isAddress = text.split(separator: ".", omittingEmptySubsequences: false).count == 4
    guard let first = text.first, first.isASCII, first.isLetter || first == "/" || isAddress && first.isNumber else {
      return false
    }
    return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "._/-".contains($0)) }
  }
}
