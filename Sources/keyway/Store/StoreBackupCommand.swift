import ArgumentParser
import Foundation
import Store

/// `keyway store backup`: a copy of the objects in a file.
struct StoreBackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copies the objects at the last acknowledged revision into one file.",
    discussion: """
      keyway store backup keyway-2026-11-21.backup

      Changes nothing in the store, and may be used while a server runs. The file is there when it is whole and on the
      disk; keyway store restore makes a store of it.
      """)

  @Argument(help: ArgumentHelp("The file to write.", valueName: "file"))
  var file: String

  @Flag(help: "Replace a file that is there.")
  var force = false

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = try options.load().store
    guard force || !FileManager.default.fileExists(atPath: file) else {
      throw CommandFailure("\(file): there is such a file already; --force replaces it")
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
