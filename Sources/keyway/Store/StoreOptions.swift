import ArgumentParser
import Foundation
import KeywayServer
import Store

/// Which store a command is about: what `serve` would take.
struct StoreOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The directory of the store (default: keyway-data, or the example's in it).", valueName: "dir"))
  var store: String?

  @Option(help: ArgumentHelp(SettingsSource.fileHelp, valueName: "file"))
  var config: String?

  /// The settings that hold for a server that is started in the same way. Throws where it would keep nothing on disk.
  func load() throws -> Settings {
    var settings = try SettingsSource(
      config: config, flags: SettingFlag.flags([("store", store)]), environment: ProcessInfo.processInfo.environment
    ).load()
    guard settings.store != "memory" else {
      throw CommandFailure("a store in memory has no files; name one with --store")
    }
    if settings.takesDefaultStore { settings.store = try Self.defaultStore() }
    return settings
  }

  /// The store that a server without arguments has here, or one with a schema alone; they differ.
  private static func defaultStore() throws -> String {
    let (own, example) = (Settings.defaultStore, Settings.exampleStore)
    let hasExample = SQLiteJournal.exists(inDirectory: example)
    guard hasExample, SQLiteJournal.exists(inDirectory: own) else { return hasExample ? example : own }
    throw CommandFailure("there are two stores, \(own) and that of the example, \(example): name one with --store")
  }

  /// Opens the journal of an existing store, which no other process can use meanwhile. Throws a `CommandFailure`.
  static func open(_ directory: String) throws -> SQLiteJournal {
    guard SQLiteJournal.exists(inDirectory: directory) else { throw CommandFailure("\(directory): there is no store") }
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
