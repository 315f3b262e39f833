package import ArgumentParser

/// `keyway bench`: load generators and the crash test, for the command to mount.
package struct BenchCommand: AsyncParsableCommand {
  /// The name of the command and its subcommands.
  package static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measures a running server, or the model in this process.",
    subcommands: [
      BenchFanoutCommand.self, BenchSlowReadersCommand.self, BenchReconnectCommand.self, BenchSpreadCommand.self,
      BenchModelCommand.self, BenchQueriesCommand.self, BenchLeasesCommand.self, BenchDurableCommand.self,
      BenchRecoveryCommand.self, BenchCrashCommand.self, BenchNeighbourCommand.self,
      BenchAttackCommand.self,
    ])

  /// The command before its arguments are read.
  package init() {}
}
