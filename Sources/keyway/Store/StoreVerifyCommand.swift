import ArgumentParser
import Store

/// `keyway store verify`: is everything there that was written, and does it come to the same objects?
struct StoreVerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Reads a store through and says what is in it, and everything that is wrong.",
    discussion: """
      Checks every record, carries all of them out again, and compares what they come to with every snapshot, byte by
      byte. Changes nothing, and may be used while a server runs. Ends with 1 where something is wrong.
      """)

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = try options.load().store
    let report = try StoreAdvice.giving(for: directory) { try StoreVerification.run(directory: directory) }
    StandardOutput.write(VerificationText.text(report, directory: directory))
    if !report.problems.isEmpty { throw ExitCode.failure }
  }
}
