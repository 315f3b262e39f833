import ArgumentParser
import Foundation

/// `keyway settings`: writes what follows from the table of settings. For those who change the table, so not displayed.
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
