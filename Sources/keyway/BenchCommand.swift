internal import ArgumentParser

/// `keyway bench`: load generators.
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measures a running server, or the model in this process.",
    subcommands: [
      BenchFanoutCommand.self, BenchSlowReadersCommand.self, BenchReconnectCommand.self, BenchModelCommand.self,
      BenchQueriesCommand.self, BenchDurableCommand.self, BenchRecoveryCommand.self, BenchCrashCommand.self,
    ])
}
