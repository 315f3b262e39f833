package import KeyValueModel
import Store

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
  package var description: String { text(in: "") }

  /// The token with a mark before and behind it. Put together by bytes, which takes half as long as an interpolation:
  /// each answer has one or two.
  func text(in mark: StaticString) -> String {
    let digits = String(revision)
    return String(
      unsafeUninitializedCapacity: 2 * mark.utf8CodeUnitCount + epoch.utf8.count + 1 + digits.utf8.count
    ) { text in
      var end = 0
      func append(_ byte: UInt8) {
        text[end] = byte
        end += 1
      }
      if mark.utf8CodeUnitCount > 0 { append(mark.utf8Start.pointee) }
      for byte in epoch.utf8 { append(byte) }
      append(UInt8(ascii: "-"))
      for byte in digits.utf8 { append(byte) }
      if mark.utf8CodeUnitCount > 0 { append(mark.utf8Start.pointee) }
      return end
    }
  }
}

extension Store {
  /// The cursor of a revision of this store.
  package func cursor(_ revision: Revision) -> Cursor { Cursor(epoch: epoch, revision: revision) }
}
