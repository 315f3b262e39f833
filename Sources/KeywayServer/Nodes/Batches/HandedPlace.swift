import KeyValueModel
import Store

/// How far a node has come that passes writes on in a batch: the field `Keyway-Records` of that request. The answer
/// then has the records after it, where the other node has the same journal up to there.
struct HandedPlace: Hashable, Sendable {
  /// The epoch of its journal, and the newest record that it has.
  let cursor: Cursor
  /// The digest there.
  let digest: JournalDigest

  /// A place of a journal.
  init(cursor: Cursor, digest: JournalDigest) {
    (self.cursor, self.digest) = (cursor, digest)
  }

  /// What a field says: a cursor, a blank, and the digest as 1 to 16 hexadecimal digits. Nil where it says something
  /// else.
  init?(_ field: String) {
    let parts = field.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, let cursor = Cursor(String(parts[0])), !parts[1].hasPrefix("+"),
      let digest = UInt64(parts[1], radix: 16)
    else { return nil }
    self.init(cursor: cursor, digest: JournalDigest(value: digest))
  }

  /// As it is sent.
  var field: String { "\(cursor) \(String(digest.value, radix: 16))" }
}
