package import KeyValueModel

/// A section that came or went with a commit.
package struct LiveSectionChange: Hashable, Sendable {
  /// Whether it came; else it went.
  package var isInsertion: Bool
  /// The value that its rows share.
  package var name: Value
  /// Its place: after the commit where it came, before where it went.
  package var index: Int
}
