/// Why a text that a store kept cannot be read back: it was changed, or written for another schema.
package struct StoredTextError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, as a clause: `there is no operation 'sett'`.
  package let reason: String
  /// How many bytes of the text stand before the mistake.
  package let offset: Int

  /// The mistake that a parser found.
  init(_ error: JSONError) {
    reason = error.reason
    offset = error.offset
  }

  /// The reason with its place.
  package var description: String { "\(reason) (byte \(offset))" }
}
