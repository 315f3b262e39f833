/// What somebody wanted to have kept with a commit, so that it is known again after a restart exactly where the commit is.
package struct StoredAttachment: Hashable, Sendable {
  /// When the commit was made, in milliseconds since 1970.
  package let milliseconds: Int64
  /// What was kept.
  package let bytes: [UInt8]
}
