import TestKit

/// A cursor taken apart: the store's epoch and a revision.
struct Cursor: Hashable, Sendable, CustomStringConvertible {
  /// The epoch of the store.
  var epoch: String
  /// The revision.
  var revision: Int

  /// A cursor with these parts.
  init(epoch: String, revision: Int) {
    self.epoch = epoch
    self.revision = revision
  }

  /// A cursor as the wire has it; nil for what is none.
  init?(_ text: String) {
    guard let dash = text.lastIndex(of: "-"), let revision = Int(text[text.index(after: dash)...]) else { return nil }
    self.init(epoch: String(text[..<dash]), revision: revision)
  }

  /// The cursor of the commit that a response acknowledges, or of the state that it shows; nil where it has none.
  init?(of response: WireResponse) {
    guard let cursor = response["Keyway-Cursor"].flatMap(Cursor.init) else { return nil }
    self = cursor
  }

  /// As the wire has it.
  var description: String { "\(epoch)-\(revision)" }
}
