import ArgumentParser

/// `keyway store`: what an operator does with the files in which a server keeps its objects.
struct StoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Checks, repairs, copies and migrates the files in which a server keeps its objects.",
    discussion: """
      verify and backup read only, and may be used while a server runs, as may migrate --dry-run. The others want the
      store for themselves.
      """,
    subcommands: [
      StoreVerifyCommand.self, StoreRepairCommand.self, StoreBackupCommand.self, StoreRestoreCommand.self,
      StoreCompactCommand.self, StoreMigrateCommand.self, StorePromoteCommand.self,
    ])
}
