package import KeyValueModel

/// What was submitted to be kept with a commit: after a restart it is there exactly where the commit is.
package struct StoredAttachment: Hashable, Sendable {
  /// The commit's revision.
  package let revision: Revision
  /// When the commit was made, in milliseconds since 1970.
  package let milliseconds: Int64
  /// What was kept.
  package let bytes: [UInt8]

  /// What was kept with the commit of a revision, made at a time in milliseconds since 1970.
  package init(revision: Revision, milliseconds: Int64, bytes: [UInt8]) {
    (self.revision, self.milliseconds, self.bytes) = (revision, milliseconds, bytes)
  }
}
