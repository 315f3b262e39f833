/// Why a journal could not do what it was asked.
package enum JournalError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another writer has appended meanwhile, or the caller has lost count: nothing was appended.
  case unexpectedRevision(expected: UInt64, last: UInt64)
  /// The disk refused the write; nothing was appended and what was there before is as it was. The next attempt may
  /// succeed.
  case refused(String)
  /// It is not known what reached the disk: nothing is appended until `recover` has read everything back.
  case untrusted(String)
  /// What is kept is not what was written: where, and what is wrong there.
  case damaged(place: String, reason: String)
  /// The records up to the revision are no longer kept.
  case compacted(base: UInt64)
  /// Another process has the store.
  case inUse(String)
  /// It cannot be opened, for a reason that no retry changes: made by a later version, no permission, no directory.
  case unusable(String)
  /// What was asked contradicts what the journal holds: a snapshot of a revision that it has not, or the like.
  case invalid(String)

  /// The reason in words.
  package var description: String {
    switch self {
    case .unexpectedRevision(let expected, let last):
      "the journal ends with revision \(last), not with \(expected)"
    case .refused(let reason), .untrusted(let reason), .inUse(let reason), .unusable(let reason), .invalid(let reason):
      reason
    case .damaged(let place, let reason): "\(place): \(reason)"
    case .compacted(let base): "the records up to revision \(base) are no longer kept"
    }
  }
}
