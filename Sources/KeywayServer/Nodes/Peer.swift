import KeyValueModel
import Store

/// A node that shares its journal with others, which write too (the specification, section 13).
struct Peer: Sendable {
  private let journal: any SharedJournal
  private let store: Store

  /// Nil where no other node writes to the store's journal.
  init?(_ store: Store) {
    guard let journal = store.journal as? any SharedJournal else { return nil }
    self.journal = journal
    self.store = store
  }

  /// How many revisions of others this node has heard of and not taken over yet.
  private var behind: UInt64 {
    let (last, revision) = (journal.bounds.last, store.revision)
    return last - min(last, revision)
  }

  /// For how many seconds the journal has not answered; 0 while it does.
  private var silence: Int64 { journal.silence > WriteTime.silence ? journal.silence.components.seconds : 0 }

  /// What `/v1/status` says of it.
  var status: JSONObject {
    var status: JSONObject = [
      "role": .string("peer"), "behind": .integer(Int64(behind)), "behindSeconds": .integer(silence),
      "pen": .string(journal.pen),
    ]
    if let cache = journal.cache?.journal { status["cached"] = .integer(Int64(cache.bounds.last)) }
    return status
  }

  /// Tells the metrics.
  func export(to registry: PrometheusRegistry) {
    registry.set(.peerBehind, to: Double(behind))
    registry.set(.peerSilence, to: Double(silence))
    registry.set(.peerPen, to: journal.hasPen ? 1 : 0)
    registry.set(.overtakenBatches, to: Double(store.overtakenBatches))
  }
}
