internal import ArgumentParser
internal import Journal
internal import KeywayAPI
internal import ModelStore

/// `keyway store compact`: files as small as they can be.
struct StoreCompactCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Makes the files of a store as small as they can be, while no server runs.",
    discussion: """
      A server does what is needed by itself; this also gives back to the file system what the database once took. With
      --no-keep-history clients that come back get all objects anew.
      """)

  @Flag(inversion: .prefixedNo, help: "Keep the records that clients need who come back, as history.… is set.")
  var keepHistory = true

  @OptionGroup var options: StoreOptions

  func run() throws {
    let settings = try options.load()
    let directory = settings.store
    let before = StoreSize.bytes(of: directory)
    let journal = try StoreOptions.open(directory)
    let compaction: StoreCompaction
    do {
      defer { journal.close() }
      compaction = try StoreAdvice.giving(for: directory) {
        try StoreCompaction.run(
          journal, keepsHistory: keepHistory, limits: settings.api.store,
          milliseconds: StoreOptions.now)
      }
    }
    StandardOutput.line(
      "\(directory): \(before) bytes before, \(StoreSize.bytes(of: directory)) after; "
        + "\(VerificationText.count(compaction.objects, "object")) at revision \(compaction.last), "
        + "records after revision \(compaction.base)")
  }
}
