import HTTPServer
import HTTPTypes
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
  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends the token to bytes.
  func append(to bytes: inout [UInt8]) {
    bytes.append(utf8Of: epoch)
    bytes.append(UInt8(ascii: "-"))
    bytes.appendDecimal(revision)
  }
}

extension FieldSection {
  /// Appends a field with a cursor, or with its entity tag in quotation marks, without making a text of it.
  mutating func append(_ name: HTTPField.Name, _ cursor: Cursor, isTag: Bool = false) {
    append(name) { bytes in
      if isTag { bytes.append(UInt8(ascii: "\"")) }
      cursor.append(to: &bytes)
      if isTag { bytes.append(UInt8(ascii: "\"")) }
    }
  }
}

extension Store {
  /// Returns the cursor of a revision of this store.
  package func cursor(_ revision: Revision) -> Cursor { Cursor(epoch: epoch, revision: revision) }
}
