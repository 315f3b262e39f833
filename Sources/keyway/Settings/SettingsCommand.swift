import ArgumentParser
import Foundation

/// `keyway settings`: writes what follows from the table of settings. For those who change the table, so not displayed.
struct SettingsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "settings", abstract: "Writes Config/keyway.yaml and the table of Limits.md from the settings.",
    shouldDisplay: false)

  @Argument(help: ArgumentHelp("The folder of the package.", valueName: "dir"))
  var package = "."

  func run() throws {
    let folder = URL(filePath: package)
    let page = folder.appending(path: "Sources/keyway/Documentation.docc/Limits.md")
    let limits = SettingsReference.limits(in: try String(contentsOf: page, encoding: .utf8))
    try limits.write(to: page, atomically: true, encoding: .utf8)
    try SettingsReference.configurationFile.write(
      to: folder.appending(path: "Config/keyway.yaml"), atomically: true, encoding: .utf8)
  }
}
