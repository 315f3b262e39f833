import ArgumentParser
import Foundation
import KeywayServer
import Store

/// Implements `keyway store backup`: copies the objects to a file.
struct StoreBackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copies the objects at the last acknowledged revision into one file.",
    discussion: """
      keyway store backup keyway-2026-11-21.backup

      Changes nothing in the store, and may be used while a server runs. The file appears once it is complete and on the
      disk; keyway store restore makes a store from it.
      """)

  @Argument(help: ArgumentHelp("The file to write.", valueName: "file"))
  var file: String

  @Flag(help: "Replace an existing file.")
  var force = false

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = try options.load().store
    guard force || !FileManager.default.fileExists(atPath: file) else {
      throw CommandFailure("\(file): the file already exists; --force replaces it")
    }
    let start = ContinuousClock.now
    let backup = try StoreAdvice.giving(for: directory) {
      try StoreBackup.write(directory: directory, to: file, milliseconds: StoreOptions.now)
    }
    for remark in backup.remarks { StandardError.line("keyway: \(remark)") }
    let bytes = (try? FileManager.default.attributesOfItem(atPath: file)[.size] as? Int) ?? 0
    let seconds = String(format: "%.2f", start.elapsedSeconds)
    StandardOutput.line(
      "\(file): \(backup.identity.epoch)-\(backup.revision), \(VerificationText.count(backup.objects, "object")), "
        + "\(bytes) bytes, \(seconds) s")
  }
}

/// Implements `keyway store restore`: creates a store from a backup.
struct StoreRestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Makes a store from a backup.",
    discussion: """
      keyway store restore keyway-2026-11-21.backup --store keyway-data

      The store has the objects, the revision and the schema of the backup, and a new epoch, so that every client
      fetches all objects again. The whole backup is read before anything is written.
      """)

  @Argument(help: ArgumentHelp("The backup.", valueName: "file"))
  var file: String

  @Flag(help: "Replace a store with records; its files are moved into a directory replaced-… within the store's.")
  var replace = false

  @Option(
    help: ArgumentHelp(
      "The schema that the backup must have; keyway store migrate moves a store to another.", valueName: "file"))
  var schema: String?

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = try options.load().store
    let text = try schema.map { try SchemaFile.loadWithText($0).text }
    let restored: StoreRestoration
    do throws(StoreError) {
      restored = try StoreRestoration.run(
        file, to: directory, schema: text, epoch: KeywayServer.makeEpoch(), replacing: replace,
        milliseconds: StoreOptions.now)
    } catch {
      throw CommandFailure(Self.reason(error))
    }
    if let aside = restored.movedAside { StandardOutput.line("the former store: \(aside)") }
    StandardOutput.line(
      "\(directory): \(VerificationText.count(restored.objects, "object")) at revision \(restored.source.revision) "
        + "of \(restored.source.epoch); the epoch is \(restored.epoch) now")
  }

  private static func reason(_ error: StoreError) -> String {
    switch error {
    case .journal(.invalid(let reason)): "\(reason); --replace moves it aside"
    case .journal(let error): "\(error)"
    case .schema(let reasons): reasons.joined(separator: "\n")
    case .replay, .storedSchema: "\(error)"
    }
  }
}
