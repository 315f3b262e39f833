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

  /// Returns the token with a mark before and after it. Written as bytes, in place, which is faster than an
  /// interpolation: each response has one or two.
  func text(in mark: StaticString) -> String {
    let (markCount, digitCount) = (mark.utf8CodeUnitCount, revision.digitCount)
    let byteCount = 2 * markCount + epoch.utf8.count + 1 + digitCount
    return String(unsafeUninitializedCapacity: byteCount) { text in
      if markCount > 0 { (text[0], text[byteCount - 1]) = (mark.utf8Start.pointee, mark.utf8Start.pointee) }
      let dash = byteCount - markCount - digitCount - 1
      _ = UnsafeMutableBufferPointer(rebasing: text[markCount..<dash]).update(fromContentsOf: epoch.utf8)
      text[dash] = UInt8(ascii: "-")
      var rest = revision
      for index in (dash + 1..<byteCount - markCount).reversed() {
        text[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      }
      return byteCount
    }
  }
}

extension Revision {
  /// The number of its decimal digits.
  fileprivate var digitCount: Int {
    var (count, bound): (Int, Revision) = (1, 10)
    while self >= bound, count < 20 {
      count += 1
      if count < 20 { bound *= 10 }
    }
    return count
  }
}

extension Store {
  /// Returns the cursor of a revision of this store.
  package func cursor(_ revision: Revision) -> Cursor { Cursor(epoch: epoch, revision: revision) }
}
