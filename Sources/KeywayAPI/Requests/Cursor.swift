package import KeyValueModel

/// `<epoch>-<revision>`: the one token that is an SSE id, a cursor to resume from, and, in quotation marks, an `ETag`.
package struct Cursor: Hashable, Sendable, CustomStringConvertible {
  /// The word of the store that counted.
  package let epoch: String
  /// How far it had counted.
  package let revision: Revision

  /// A cursor of a store.
  package init(epoch: String, revision: Revision) {
    self.epoch = epoch
    self.revision = revision
  }

  /// The cursor that `text` is, nil where it has another form.
  package init?(_ text: some StringProtocol) {
    guard let dash = text.lastIndex(of: "-"), dash > text.startIndex else { return nil }
    let digits = text[text.index(after: dash)...]
    guard digits.isDecimal, let revision = Revision(digits), digits == "0" || !digits.hasPrefix("0") else { return nil }
    self.init(epoch: String(text[..<dash]), revision: revision)
  }

  /// The token.
  package var description: String { "\(epoch)-\(revision)" }

  /// The token as a strong entity tag (RFC 9110 §8.8.3).
  package var entityTag: String { "\"\(epoch)-\(revision)\"" }
}
