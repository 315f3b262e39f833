import ArgumentParser
import KeywayServer
import Store

/// `keyway store promote`: a follower's store becomes one that takes writes.
struct StorePromoteCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "promote",
    abstract: "Makes the store of a stopped follower one that takes writes.",
    discussion: """
      keyway store promote --store b

      For the day on which the node that it followed does not come back. The store gets another epoch, so that every
      client gets all objects anew: what the old node took and this one never heard of would otherwise have revisions
      that this one gives to other writes. The old node can join again as a follower, with an empty store.
      """)

  @Flag(
    help: """
      Keep the epoch, and with it every cursor. Only where the old node has stopped and this one had everything \
      (behind was 0), and the old node never takes writes again.
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
