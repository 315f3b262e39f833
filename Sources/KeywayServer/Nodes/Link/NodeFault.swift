/// Why another node gave no answer.
package struct NodeFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// What happened, in words.
  package let reason: String
  /// Whether the other node has certainly not received the request whole, so that nothing was carried out.
  package let isUnsent: Bool
  /// Whether the other node was reached, and said nothing in time: it may be there, and slow.
  package let isSilence: Bool

  /// A fault, by default after the request may have been received.
  package init(_ reason: String, isUnsent: Bool = false, isSilence: Bool = false) {
    self.reason = reason
    self.isUnsent = isUnsent
    self.isSilence = isSilence
  }

  /// The reason.
  package var description: String { reason }
}
