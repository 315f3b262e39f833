import ArgumentParser
import Foundation
import Journal
import KeywayAPI

/// Which store a command is about: what `serve` would take.
struct StoreOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The directory of the store (default: keyway-data).", valueName: "dir"))
  var store: String?

  @Option(help: ArgumentHelp("A configuration file (YAML), as for serve.", valueName: "file"))
  var config: String?

  /// The settings that hold for a server that is started in the same way. Throws where it would keep nothing on disk.
  func load() throws -> Settings {
    let settings = try Settings.load(
      configFile: config, flags: SettingFlag.flags([("store", store)]),
      environment: ProcessInfo.processInfo.environment)
    guard settings.store != "memory" else {
      throw CommandFailure("a store in memory has no files; name one with --store")
    }
    return settings
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
