import ArgumentParser
import Foundation
import KeywayServer
import Store

/// `keyway store compact`: files as small as they can be.
struct StoreCompactCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Makes the files of a store as small as they can be, while no server runs.",
    discussion: """
      A server does what is needed by itself; this also gives back to the file system what the database once took. With
      --no-keep-history returning clients get all objects anew.
      """)

  @Flag(inversion: .prefixedNo, help: "Keep the records that returning clients need, as history.… is set.")
  var keepHistory = true

  @OptionGroup var options: StoreOptions

  func run() throws {
    let settings = try options.load()
    let directory = settings.store
    let before = Self.bytes(of: directory)
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
      "\(directory): \(before) bytes before, \(Self.bytes(of: directory)) after; "
        + "\(VerificationText.count(compaction.objects, "object")) at revision \(compaction.last), "
        + "records after revision \(compaction.base)")
  }

  /// The bytes of all files of a store's directory that the store uses, without what was moved aside.
  private static func bytes(of directory: String) -> Int {
    let snapshots = directory + "/snapshots"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: snapshots)) ?? []
    let paths =
      ["journal.sqlite", "journal.sqlite-wal", "acknowledged"].map { "\(directory)/\($0)" }
      + names.filter { $0.hasSuffix(".snapshot") }.map { "\(snapshots)/\($0)" }
    return paths.reduce(0) { sum, path in
      sum + ((try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0)
    }
  }
}
