import ArgumentParser
import Foundation
import KeyValueModel
import KeywayServer

/// Implements `keyway settings`: writes the files derived from the table of settings. It is for developers who change
/// the table, so the help does not list it.
struct SettingsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "settings",
    abstract: "Writes Config/keyway.yaml and the tables of Limits.md and Metrics.md from the program's own.",
    shouldDisplay: false)

  @Argument(help: ArgumentHelp("The folder of the package.", valueName: "dir"))
  var package = "."

  func run() throws {
    let folder = URL(filePath: package)
    let page = folder.appending(path: "Sources/keyway/Documentation.docc/Limits.md")
    let limits = SettingsReference.limits(in: try String(contentsOf: page, encoding: .utf8))
    try limits.write(to: page, atomically: true, encoding: .utf8)
    let metrics = folder.appending(path: "Sources/keyway/Documentation.docc/Metrics.md")
    let written = MetricsReference.metrics(in: try String(contentsOf: metrics, encoding: .utf8))
    try written.write(to: metrics, atomically: true, encoding: .utf8)
    try SettingsReference.configurationFile.write(
      to: folder.appending(path: "Config/keyway.yaml"), atomically: true, encoding: .utf8)
  }
}

/// Generates texts from the table of settings: configuration files, and the table of Limits.md.
enum SettingsReference {
  /// `Config/keyway.yaml`: every setting with its default and its meaning.
  static var configurationFile: String {
    """
    # Every setting of keyway with its default. A flag takes precedence over an environment variable (heartbeat.seconds
    # is KEYWAY_HEARTBEAT_SECONDS, request.headerBytes KEYWAY_REQUEST_HEADER_BYTES), that over this file, this over the
    # default. Paths are relative to the folder where the server starts. `keyway serve --config FILE --print-config`
    # shows the settings in effect and their origins; without --config and KEYWAY_CONFIG, FILE is keyway.yaml there.
    #
    # Most servers set some of these only:
    # \(Settings.first.joined(separator: ", "))
    #
    # Written from the table of settings by `keyway settings`.


    """ + Settings().rendered(comment: \.help)
  }

  /// Returns the text of Limits.md with its tables updated from the settings and their limits.
  static func limits(in page: String) -> String {
    let limits = Dictionary(SettingLimit.all.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let defaults = Settings()
    let rows = Settings.all.map { setting in
      let limit = limits[setting.name]
      let cells = [
        "`\(setting.name)`", Settings.yaml(setting.value(defaults)), setting.allowed,
        setting.help.replacing("[", with: "\\["), limit?.subject.rawValue ?? "", limit?.consequence ?? "",
      ]
      return "| " + cells.joined(separator: " | ") + " |"
    }
    let first = Settings.first.compactMap { name in Settings.all.first { $0.name == name } }.map { setting in
      "| `\(setting.name)` | \(Settings.yaml(setting.value(defaults))) | \(setting.help.replacing("[", with: "\\[")) |"
    }
    return page.replacingTable(
      withHeader: "| set first |", by: ["| set first | default | what it is |", "|---|---|---|"] + first
    ).replacingTable(
      withHeader: "| setting |",
      by: ["| setting | default | allowed | what it is | for each | what is over it |", "|---|---|---|---|---|---|"]
        + rows)
  }
}

// MARK: Settings as a configuration file

extension Settings {
  /// Returns the settings as a configuration file, each with a comment on the origin of its value.
  func rendered() -> String {
    rendered { setting in origins[setting.name].map { "\($0)" } ?? "default" }
  }

  /// Returns the settings as a configuration file, each with the comment that `comment` returns. Settings of one group
  /// are listed under its name.
  func rendered(comment: (Setting) -> String) -> String {
    var text = ""
    var group: Substring?
    for setting in Self.all {
      var line = "\(setting.name): "
      let parts = setting.name.split(separator: ".", maxSplits: 1)
      if parts.count > 1 {
        if group != parts[0] { text += "\(parts[0]):\n" }
        line = "  \(parts[1]): "
      }
      group = parts.count > 1 ? parts[0] : nil
      line += Self.yaml(setting.shown(self))
      text += line + String(repeating: " ", count: max(2, 32 - line.count)) + "# \(comment(setting))\n"
    }
    return text
  }

  /// Returns a value as YAML. Every JSON string is valid YAML.
  static func yaml(_ value: Setting.Value) -> String {
    switch value {
    case .integer(let integer): String(integer)
    case .text(let text), .untyped(let text), .other(let text): isPlain(text) ? text : Value.string(text).json
    case .list(let elements): "[" + elements.map { Value.string($0).json }.joined(separator: ", ") + "]"
    }
  }

  /// Returns true if YAML reads the text as a string without quotation marks. Returns false in case of doubt.
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

/// Generates the table of Metrics.md from the metrics.
enum MetricsReference {
  /// Returns the text of the page with its table updated from the metrics.
  static func metrics(in page: String) -> String {
    let rows = Metric.allCases.map { metric in
      let labels = metric.labels.map { "`\($0)`" }.joined(separator: " ")
      return "| `\(metric.rawValue)` | \(metric.kind.rawValue) | \(labels) | \(metric.help) |"
    }
    return page.replacingTable(
      withHeader: "| metric |", by: ["| metric | type | labels | meaning |", "|---|---|---|---|"] + rows)
  }
}

extension String {
  /// Returns the text of a page with the table whose first line begins with `header` replaced by other lines.
  fileprivate func replacingTable(withHeader header: String, by table: [String]) -> String {
    var lines = components(separatedBy: "\n")
    guard let start = lines.firstIndex(where: { $0.hasPrefix(header) }) else { return self }
    lines.replaceSubrange(lines[start...].prefix { $0.hasPrefix("|") }.indices, with: table)
    return lines.joined(separator: "\n")
  }
}
