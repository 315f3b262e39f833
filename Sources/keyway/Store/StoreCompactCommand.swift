import ArgumentParser
import Foundation
import KeywayServer
import Store

/// Implements `keyway store compact`: makes the files as small as possible.
struct StoreCompactCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Makes the files of a store as small as possible, while no server runs.",
    discussion: """
      A server compacts its store by itself as needed; this command also returns the free space of the database to the
      file system. With --no-keep-history, returning clients fetch all objects again.
      """)

  @Flag(inversion: .prefixedNo, help: "Keep the records that returning clients need, as the history.… settings say.")
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

  /// Returns the total size in bytes of the files that a store uses, without those that were moved aside.
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

/// Implements `keyway store promote`: makes a follower's store one that accepts writes.
struct StorePromoteCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "promote",
    abstract: "Makes the store of a stopped follower accept writes.",
    discussion: """
      keyway store promote --store b

      Use this if the node that it followed does not come back. The store gets a new epoch, so that every client fetches
      all objects again: writes that the old node accepted and this one never received would otherwise have the same
      revisions as later writes. The old node can join again as a follower, with an empty store.
      """)

  @Flag(
    help: """
      Keep the epoch, and with it every cursor. Only if the old node has stopped, this one had everything (behind was \
      0), and the old node never accepts writes again.
      """)
  var keepEpoch = false

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = try options.load().store
    let isNew = !keepEpoch
    let promotion = try StoreAdvice.giving(for: directory) {
      try StorePromotion.run(
        directory: directory, milliseconds: StoreOptions.now, newEpoch: isNew ? { KeywayServer.makeEpoch() } : nil)
    }
    let epoch = promotion.epoch
    let change = keepEpoch ? "keeps the epoch \(epoch)" : "has the epoch \(epoch) after \(promotion.previousEpoch)"
    StandardOutput.line(
      "\(directory): followed \(promotion.leader) up to revision \(promotion.revision), takes writes now and \(change)")
  }
}
