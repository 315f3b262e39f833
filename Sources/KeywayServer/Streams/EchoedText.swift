/// A `context`: text of a client that is given back with every change, unread. Two are equal when their bytes are,
/// where Swift's strings take canonically equivalent ones for the same.
package struct EchoedText: Hashable, Sendable {
  /// The most bytes that a context may have.
  package static let maximumBytes = 1024

  /// The text as it came.
  package let text: String

  /// A context; one that is too long is thrown as `mistake`.
  package init(_ text: String, mistake: ProblemCode) throws(Problem) {
    guard text.utf8.count <= Self.maximumBytes else {
      throw Problem(mistake, "a context has at most \(Self.maximumBytes) bytes")
    }
    self.text = text
  }

  /// Equal byte for byte.
  package static func == (left: EchoedText, right: EchoedText) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  /// Feeds what equality looks at, or less.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(text)
  }
}
