import HTTPTypes
import KeyValueModel
import Store

/// How a peer that passes writes on takes over what they did: the answer to a batch has the records that the peer
/// lacked when it sent it, so that it asks the database for none of them.
struct RecordTaking: Sendable {
  /// The fields by which a batch says how far this node has come.
  let fields: @Sendable () -> [(name: String, value: String)]
  /// Takes over what came with an answer: it is published when this returns, so that the writes can be answered.
  let take: @Sendable (HandedRecords) -> Void
}

extension RecordTaking {
  /// For a store over a journal that other nodes append to.
  init(_ journal: any SharedJournal, _ store: Store) {
    self.init {
      let (revision, digest) = journal.newest
      let place = HandedPlace(cursor: store.cursor(revision), digest: digest)
      return [(HTTPField.Name.keywayRecords.rawName, place.field)]
    } take: {
      store.take($0)
    }
  }
}
