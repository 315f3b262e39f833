import ArgumentParser
import KeywayAPI
import KeywayBench

/// The command: a server of live objects, and a client for it.
@main struct Keyway: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyway",
    abstract: "Keeps model objects, serves them over REST, and sends every subscriber what changed.",
    version: "keyway \(Release.version)",
    subcommands: [
      InitCommand.self, ServeCommand.self, CheckCommand.self, StatusCommand.self, GetCommand.self, SetCommand.self,
      CreateCommand.self, PatchCommand.self, DeleteCommand.self, WatchCommand.self, ImportCommand.self,
      ExportCommand.self, StoreCommand.self, TokenCommand.self, BenchCommand.self, SettingsCommand.self,
    ])
}
