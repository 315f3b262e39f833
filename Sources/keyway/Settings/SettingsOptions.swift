internal import ArgumentParser
internal import Foundation

/// The flags of `serve` that are settings, and where the others come from.
struct SettingsOptions: ParsableArguments {
  @Option(help: ArgumentHelp("A configuration file (YAML).", valueName: "file"))
  var config: String?

  @Option(help: "The address to listen on.")
  var host: String?

  @Option(help: "The port to listen on; 0 takes a free one.")
  var port: String?

  @Option(help: ArgumentHelp("The schema file.", valueName: "file"))
  var schema: String?

  @Option(help: "Where objects are kept: memory.")
  var store: String?

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

  /// The flags as settings; `--set` comes last, and wins.
  var flags: [SettingFlag] {
    let named = [("host", host), ("port", port), ("schema", schema), ("store", store)]
    return named.compactMap { name, value in value.map { SettingFlag(name, $0) } }
      + set.compactMap(SettingFlag.init(assignment:))
  }

  /// The settings that hold.
  func load() throws(SettingsError) -> Settings {
    try Settings.load(configFile: config, flags: flags, environment: ProcessInfo.processInfo.environment)
  }
}
