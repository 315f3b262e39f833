/// How far a store has come with reading its journal.
package struct RecoveryProgress: Hashable, Sendable, CustomStringConvertible {
  /// Objects that were read from the snapshot so far.
  package var objects = 0
  /// Records that were carried out again so far.
  package var records = 0
  /// Records that are to be carried out in all; 0 while that is not known.
  package var recordsInAll = 0

  /// Nothing yet.
  package init() {}

  /// A sentence for logs and for an operator who waits.
  package var description: String {
    guard recordsInAll > 0 else { return "\(objects) objects read" }
    return "\(objects) objects read, \(records) of \(recordsInAll) records carried out"
  }
}
