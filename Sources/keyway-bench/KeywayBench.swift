import ArgumentParser

/// The program that measures `keyway`, attacks it and kills it. The server and its clients have no part of it.
@main struct KeywayBench: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyway-bench",
    abstract: "Measures a running server, or the model in this process.",
    subcommands: [
      BenchFanoutCommand.self, BenchSlowReadersCommand.self, BenchReconnectCommand.self, BenchSpreadCommand.self,
      BenchModelCommand.self, BenchQueriesCommand.self, BenchLeasesCommand.self, BenchDurableCommand.self,
      BenchRecoveryCommand.self, BenchCrashCommand.self, BenchNeighbourCommand.self,
      BenchAttackCommand.self,
    ])
}
