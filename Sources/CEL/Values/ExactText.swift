/// A text that equals another one only when both have the same Unicode scalars, as names in JSON, keys of maps and
/// strings of expressions are compared. `String` takes canonically equivalent texts for the same, such as the two ways
/// to write `é`.
package struct ExactText: Hashable, Sendable, ExpressibleByStringLiteral {
  /// The text as it was written.
  package let text: String

  /// The exact form of `text`. O(1).
  package init(_ text: String) { self.text = text }

  /// The exact form of a literal.
  package init(stringLiteral text: String) { self.text = text }

  /// Whether both have the same scalars. O(n) in the shorter text.
  package static func == (left: ExactText, right: ExactText) -> Bool { left.text.hasSameScalars(as: right.text) }

  /// Adds the bytes of the text. O(n).
  package func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(UInt8(0xFF))
  }
}
