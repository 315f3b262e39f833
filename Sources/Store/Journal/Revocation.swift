/// Tokens of one `sub` are refused that were issued before a time.
package struct Revocation: Hashable, Sendable {
  /// The `sub` of the tokens.
  package let subject: String
  /// The time, in milliseconds since 1970.
  package let milliseconds: Int64

  /// A revocation of these parts.
  package init(subject: String, milliseconds: Int64) {
    self.subject = subject
    self.milliseconds = milliseconds
  }

  /// What tells the `sub` from every other: its bytes, where equal texts may have different ones.
  package var key: [UInt8] { Array(subject.utf8) }

  /// One of each `sub`, with the later of the times.
  static func merged(_ some: [Revocation], _ others: [Revocation]) -> [Revocation] {
    let bySubject = Dictionary((some + others).map { ($0.key, $0) }) { one, other in
      one.milliseconds > other.milliseconds ? one : other
    }
    return Array(bySubject.values)
  }

  /// The digest of all of it, by which it is known to be what was written.
  package var digest: JournalDigest {
    JournalDigest.start.linked(
      to: withUnsafeBytes(of: milliseconds.littleEndian) { Array($0) } + key)
  }
}

/// As it stands in the header of a backup.
extension Revocation: Codable {
  private enum CodingKeys: String, CodingKey {
    case subject = "sub"
    case milliseconds = "before"
  }
}
