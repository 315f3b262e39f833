package import KeyValueModel
import Store

/// The token `<epoch>-<revision>`: an SSE id, a cursor to resume from and, in quotation marks, an `ETag`.
package struct Cursor: Hashable, Sendable, CustomStringConvertible {
  /// The epoch of the store that counted the revision.
  package let epoch: String
  /// The revision.
  package let revision: Revision

  /// Creates the cursor of a revision.
  package init(epoch: String, revision: Revision) {
    self.epoch = epoch
    self.revision = revision
  }

  /// Parses a cursor. Nil if the text is not one.
  package init?(_ text: some StringProtocol) {
    guard let dash = text.lastIndex(of: "-"), dash > text.startIndex else { return nil }
    let digits = text[text.index(after: dash)...]
    guard digits.isDecimal, let revision = Revision(digits), digits == "0" || !digits.hasPrefix("0") else { return nil }
    self.init(epoch: String(text[..<dash]), revision: revision)
  }

  /// The token.
  package var description: String { text(in: "") }

  /// Returns the token with a mark before and after it. Assembled from bytes, which takes half as long as an
  /// interpolation: each response has one or two.
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
  /// Returns the cursor of a revision of this store.
  package func cursor(_ revision: Revision) -> Cursor { Cursor(epoch: epoch, revision: revision) }
}
