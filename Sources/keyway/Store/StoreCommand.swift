import ArgumentParser
import Foundation
import KeywayServer
import Store

/// Implements `keyway store`: the commands of an operator for the files in which a server keeps its objects.
struct StoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Checks, repairs, copies and migrates the files in which a server keeps its objects.",
    discussion: """
      verify, backup and migrate --dry-run only read, and may be used while a server runs. The others need the store
      for themselves.
      """,
    subcommands: [
      StoreVerifyCommand.self, StoreRepairCommand.self, StoreBackupCommand.self, StoreRestoreCommand.self,
      StoreCompactCommand.self, StoreMigrateCommand.self, StorePromoteCommand.self,
    ])
}

/// The store of a command: the one that `serve` would use.
struct StoreOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The directory of the store (default: keyway-data, or the example's in it).", valueName: "dir"))
  var store: String?

  @Option(help: ArgumentHelp(SettingsSource.fileHelp, valueName: "file"))
  var config: String?

  /// Loads the settings of a server that is started in the same way. Throws if that server would store nothing on disk.
  func load() throws -> Settings {
    var settings = try SettingsSource(
      config: config, flags: SettingFlag.flags([("store", store)]), environment: ProcessInfo.processInfo.environment
    ).load()
    guard settings.store != "memory" else {
      throw CommandFailure("a store in memory has no files; name a store with --store")
    }
    if settings.takesDefaultStore { settings.store = try Self.defaultStore() }
    return settings
  }

  /// Returns the store of a server without arguments in this folder, or that of a server with a schema only: they
  /// differ.
  private static func defaultStore() throws -> String {
    let (own, example) = (Settings.defaultStore, Settings.exampleStore)
    let hasExample = SQLiteJournal.exists(inDirectory: example)
    guard hasExample, SQLiteJournal.exists(inDirectory: own) else { return hasExample ? example : own }
    throw CommandFailure("there are two stores, \(own) and that of the example, \(example): name one with --store")
  }

  /// Opens the journal of an existing store, which locks out other processes. Throws a `CommandFailure`.
  static func open(_ directory: String) throws -> SQLiteJournal {
    guard SQLiteJournal.exists(inDirectory: directory) else {
      throw CommandFailure("\(directory): the store does not exist")
    }
    let journal = try StoreAdvice.giving(for: directory) {
      try SQLiteJournal(directory: directory, durability: .synced) {
        JournalIdentity(epoch: KeywayServer.makeEpoch(), schema: "")
      }
    }
    for remark in journal.remarks { StandardError.line("keyway: \(remark)") }
    return journal
  }

  static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }
}

/// Advice for an operator on errors of a store.
enum StoreAdvice {
  /// Returns the text of an error, followed by the commands that help. `directory` is the directory of the store.
  static func text(_ error: any Error, directory: String) -> String {
    var text = "\(error)"
    if !text.contains(directory) { text = "\(directory): \(text)" }
    guard let advice = advice(error, directory) else { return text }
    return "\(text)\n\(advice)"
  }

  /// The placeholder for the directory of nodes that keep their journal in a database.
  static let database = "the database"

  private static func advice(_ error: any Error, _ directory: String) -> String? {
    guard directory != database else { return nil }
    return switch error {
    case StoreError.journal(let error): advice(error, directory)
    case StoreError.replay, JournalError.damaged:
      """
      Nothing was changed. What can be done:
        keyway store verify --store \(directory)                    reports what is intact, and up to which revision
        keyway store repair --store \(directory) --until REVISION   continues with what is intact
        keyway store restore BACKUP --store \(directory) --replace  continues with a backup
      """
    case StoreError.schema:
      """
      Nothing was changed. What can be done:
        keyway serve --store OTHER                                  keeps objects of this schema in a store of its own
        keyway store migrate --store \(directory) --schema SCHEMA --step '…' --dry-run   reports what steps would do
      """
    case JournalError.inUse: "Stop that process first."
    default: nil
    }
  }

  /// Runs `body`. Throws an error of the store as a `CommandFailure` with advice.
  static func giving<Result>(for directory: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error where error is StoreError || error is JournalError {
      throw CommandFailure(text(error, directory: directory))
    }
  }
}
