import KeyValueModel
import Support
import Synchronization

/// A store over a journal that other nodes append to as well.
extension Store {
  /// Where other nodes append to the journal, takes over what they append, on a thread of its own, until the journal is
  /// closed. To be called after `recover`.
  package func follow() {
    if let shared { PeerRecords.follow(shared, self) }
  }

  /// Takes over records that another node hands to this one, so that they are published when this returns. Where they
  /// do not follow on what this node has, they come by the journal, as always.
  package func take(_ handed: HandedRecords) {
    guard let shared, shared.take(handed) else { return }
    // What goes wrong here goes wrong again where the journal is followed, and is told there.
    try? PeerRecords(store: self).takeOver(from: shared)
  }

  /// Whether an error of the journal says that others have appended, and what they appended was taken over.
  func isOvertaken(_ error: JournalError, _ writing: inout Writing) -> Bool {
    guard shared != nil, case .unexpectedRevision = error else { return false }
    return (try? PeerRecords(store: self).catchUp(&writing)) != nil
  }

  /// How often a batch of this node was judged anew because another node had appended first.
  package var overtakenBatches: Int { overtaken.load(ordering: .relaxed) }

  /// Whether this node is to do what one node has to do for all.
  var isCaretaker: Bool { shared?.hasPen ?? true }
}
