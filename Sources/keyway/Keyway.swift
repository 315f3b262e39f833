import ArgumentParser
import KeywayBench

/// The command: a server of live objects, and a client for it.
@main struct Keyway: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyway",
    abstract: "Keeps model objects, serves them over REST, and sends every subscriber what changed.",
    subcommands: [
      ServeCommand.self, CheckCommand.self, GetCommand.self, SetCommand.self, WatchCommand.self, ImportCommand.self,
      ExportCommand.self, StoreCommand.self, TokenCommand.self, BenchCommand.self, SettingsCommand.self,
    ])
}
