import ArgumentParser
import CommandSupport
import TestKit

/// `keyway-bench leases`: what objects that end by themselves cost the writers of others.
struct BenchLeasesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "leases",
    abstract: "Measures writers beside objects that end by themselves, while these wait, are renewed, and end.",
    discussion: """
      keyway-bench leases --leases 1000000 --ending 1000 --renewed 1000 --pid $(pidof keyway)

      A few connections set other objects at a fixed rate, first alone, then beside so many objects with a lease, and
      last while so many of these are renewed and so many end each second. At the end the objects that are left are
      counted.

      Exits with 1 if an object ended that should not, or did not end. Figures are printed and not judged.
      """)

  @Option(help: "How many objects have a lease.")
  var leases = 1_000_000

  @Option(help: ArgumentHelp("How many leases end.", valueName: "per second"))
  var ending = 1000

  @Option(help: ArgumentHelp("How many leases are renewed.", valueName: "per second"))
  var renewed = 1000

  @Option(help: ArgumentHelp("How many other objects are set.", valueName: "per second"))
  var rate = 500

  @Option(help: "How many connections set them, and how many others renew leases.")
  var publishers = 8

  @Option(help: ArgumentHelp("How long each phase is.", valueName: "seconds"))
  var seconds = 10

  @Option(help: "What the random order of the objects that are written comes from.")
  var seed: UInt64 = 1

  @Option(help: "The server's process, for its memory and CPU.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  /// How many leases end in all.
  var endingCount: Int { ending * seconds }

  func validate() throws {
    try ReportOptions.check([
      ("--ending", ending, 0...100_000), ("--renewed", renewed, 0...100_000), ("--rate", rate, 1...100_000),
      ("--publishers", publishers, 1...1000), ("--seconds", seconds, 1...3600),
    ])
    try ReportOptions.check([("--leases", leases, endingCount + publishers...10_000_000)])
  }

  func run() throws {
    try report.show(try LeasesRun(self, try client.socketAddress).run())
  }
}
