import ArgumentParser
import CommandSupport
import Foundation

/// The flags of `serve` that are settings, and where the others come from.
struct SettingsOptions: ParsableArguments {
  @Option(help: ArgumentHelp(SettingsSource.fileHelp, valueName: "file"))
  var config: String?

  @Option(help: "The address to listen on.")
  var host: String?

  @Option(help: "The port to listen on; 0 takes a free one.")
  var port: String?

  @Option(help: ArgumentHelp("The schema file (default: example, the one in the program).", valueName: "file"))
  var schema: String?

  @Option(
    help: "The directory where objects are kept (default: keyway-data), or memory.")
  var store: String?

  @Option(help: ArgumentHelp("The node to follow: reads here, writes there.", valueName: "url"))
  var follow: String?

  @Option(help: ArgumentHelp("The PostgreSQL database that several nodes keep their journal in.", valueName: "url"))
  var journal: String?

  @Option(
    name: .customLong("public"),
    help: ArgumentHelp("A folder of an application's own files, served at / beside /v1.", valueName: "folder"))
  var publicFolder: String?

  @Option(
    help: ArgumentHelp("Any other setting; can be repeated. --print-config lists them all.", valueName: "name=value"))
  var set: [String] = []

  @Flag(help: "Print the settings that hold, with where each comes from, and exit.")
  var printConfig = false

  func validate() throws {
    for assignment in set where SettingFlag(assignment: assignment) == nil {
      throw ValidationError("--set is written name=value, not \(assignment)")
    }
  }

  /// Where the settings come from. Of the flags, `--set` comes last and wins.
  var source: SettingsSource {
    let named = SettingFlag.flags([
      ("host", host), ("port", port), ("schema", schema), ("store", store), ("public", publicFolder),
    ])
    let following = follow.map { [SettingFlag(flag: "--follow", name: "nodes.follow", value: $0)] } ?? []
    let shared = journal.map { [SettingFlag(flag: "--journal", name: "nodes.journal", value: $0)] } ?? []
    return SettingsSource(
      config: config, flags: named + following + shared + set.compactMap(SettingFlag.init(assignment:)),
      environment: ProcessInfo.processInfo.environment)
  }
}

/// Where the settings of a server come from, to be read once, or again while it runs.
struct SettingsSource: Sendable {
  /// The variable that names the configuration file.
  static let fileVariable = "KEYWAY_CONFIG"
  /// The configuration file that is looked for where none is named.
  private static let usualFile = ServerFile.name
  static let fileHelp =
    "A configuration file (YAML), or none (default: what \(fileVariable) says, or \(usualFile) where there is one)."

  /// The path of the configuration file; nil for none.
  let configFile: String?
  /// What named it, or `the current folder`, where it was found.
  let fileOrigin: String
  let flags: [SettingFlag]
  let environment: [String: String]

  /// Chooses the configuration file: the one that `config`, the value of `--config`, names, else the environment,
  /// else the usual one where it exists. A server keeps to it while it runs.
  init(
    config: String?, flags: [SettingFlag], environment: [String: String],
    exists: (String) -> Bool = { FileManager.default.fileExists(atPath: $0) }
  ) {
    let variable = environment[Self.fileVariable].flatMap { $0.isEmpty ? nil : $0 }
    let named = config ?? variable ?? (exists(Self.usualFile) ? Self.usualFile : "none")
    configFile = named == "none" ? nil : named
    fileOrigin = config != nil ? "--config" : variable != nil ? Self.fileVariable : "the current folder"
    self.flags = flags
    self.environment = environment
  }

  /// The settings that hold now.
  func load() throws(SettingsError) -> Settings {
    try Settings.load(configFile: configFile, flags: flags, environment: environment)
  }
}

/// A setting that the command line gives.
struct SettingFlag: Hashable, Sendable {
  /// The flag as it was written: `--port`, `--set fetch.limit`.
  var flag: String
  var name: String
  var value: String

  /// A flag with another name than its setting.
  init(flag: String, name: String, value: String) {
    self.flag = flag
    self.name = name
    self.value = value
  }

  /// `--NAME VALUE`, for the flags that are named like their settings.
  init(_ name: String, _ value: String) {
    self.flag = "--\(name)"
    self.name = name
    self.value = value
  }

  /// `--set NAME=VALUE`; nil without an equals sign.
  init?(assignment: String) {
    guard let equals = assignment.firstIndex(of: "=") else { return nil }
    name = String(assignment[..<equals])
    value = String(assignment[assignment.index(after: equals)...])
    flag = "--set \(name)"
  }

  /// Those flags that were given.
  static func flags(_ flags: [(name: String, value: String?)]) -> [SettingFlag] {
    flags.compactMap { name, value in value.map { SettingFlag(name, $0) } }
  }
}
