import ArgumentParser
import CommandSupport
import Foundation

/// The flags of `serve` that are settings, and the sources of the others.
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

  @Flag(help: "Print the settings in effect, with the origin of each, and exit.")
  var printConfig = false

  func validate() throws {
    for assignment in set where SettingFlag(assignment: assignment) == nil {
      throw ValidationError("--set must be name=value, not \(assignment)")
    }
  }

  /// The source of the settings. Among the flags, `--set` takes precedence.
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

/// The source of a server's settings, to be read at the start, or again while it runs.
struct SettingsSource: Sendable {
  /// The environment variable that names the configuration file.
  static let fileVariable = "KEYWAY_CONFIG"
  /// The configuration file that is used, if it exists, when none is named.
  private static let usualFile = ServerFile.name
  static let fileHelp =
    "A configuration file (YAML), or none (default: that of \(fileVariable), or \(usualFile) if it exists)."

  /// The path of the configuration file, or nil for none.
  let configFile: String?
  /// The flag or variable that named it, or `the current folder` if it was found there.
  let fileOrigin: String
  let flags: [SettingFlag]
  let environment: [String: String]

  /// Chooses the configuration file: the one that `config`, the value of `--config`, names, else that of the
  /// environment, else the usual one if it exists. A server uses the same file while it runs.
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

  /// Loads the present settings.
  func load() throws(SettingsError) -> Settings {
    try Settings.load(configFile: configFile, flags: flags, environment: environment)
  }
}

/// A setting of the command line.
struct SettingFlag: Hashable, Sendable {
  /// The flag as written: `--port`, `--set fetch.limit`.
  var flag: String
  var name: String
  var value: String

  /// Creates a flag whose name differs from that of its setting.
  init(flag: String, name: String, value: String) {
    self.flag = flag
    self.name = name
    self.value = value
  }

  /// Creates the flag `--NAME VALUE`, which is named like its setting.
  init(_ name: String, _ value: String) {
    self.flag = "--\(name)"
    self.name = name
    self.value = value
  }

  /// Creates the flag `--set NAME=VALUE`. Nil without an equals sign.
  init?(assignment: String) {
    guard let equals = assignment.firstIndex(of: "=") else { return nil }
    name = String(assignment[..<equals])
    value = String(assignment[assignment.index(after: equals)...])
    flag = "--set \(name)"
  }

  /// Returns the flags that were given.
  static func flags(_ flags: [(name: String, value: String?)]) -> [SettingFlag] {
    flags.compactMap { name, value in value.map { SettingFlag(name, $0) } }
  }
}
