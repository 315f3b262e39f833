/// A cursor taken apart: the store's epoch and a revision.
struct CrashCursor: Hashable, Sendable, CustomStringConvertible {
  /// The epoch of the store.
  var epoch: String
  /// The revision.
  var revision: Int64

  /// A cursor with these parts.
  init(epoch: String, revision: Int64) {
    self.epoch = epoch
    self.revision = revision
  }

  /// A cursor as the wire has it; nil for what is none.
  init?(_ text: String) {
    guard let dash = text.lastIndex(of: "-"), let revision = Int64(text[text.index(after: dash)...]) else { return nil }
    self.init(epoch: String(text[..<dash]), revision: revision)
  }

  /// As the wire has it.
  var description: String { "\(epoch)-\(revision)" }
}
