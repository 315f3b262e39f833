/// A snapshot's file as it was found.
package struct StoredSnapshot: Hashable, Sendable {
  /// What it is good for.
  package enum Condition: Hashable, Sendable {
    /// Every byte is what was written, and it is one of the journal.
    case whole
    /// It is not what was written: where and how.
    case damaged(String)
    /// It is whole, and the journal has no use for it: why.
    case unused(String)
  }

  /// The name of the file in the directory of snapshots.
  package let name: String
  /// The file with its path.
  package let path: String
  /// The revision that the name says.
  package let revision: UInt64
  /// How long the file is.
  package let byteCount: Int
  /// What the file says of itself; nil where that cannot be read.
  package let header: SnapshotFile.Header?
  /// What it is good for.
  package private(set) var condition: Condition

  /// Reads a file through; nil for one that is no snapshot, or that was taken away meanwhile.
  init?(name: String, _ layout: JournalLayout) {
    guard let revision = JournalLayout.revision(ofSnapshot: name) else { return nil }
    self.name = name
    self.revision = revision
    path = "\(layout.snapshots)/\(name)"
    byteCount = SystemFile.size(of: path)
    var found: SnapshotFile.Header?
    do {
      let file = try SnapshotFile(path: path)
      found = file.header
      try file.read { _ in }
      let isNamed = file.header.revision == revision
      condition = isNamed ? .whole : .damaged("\(path): it is of revision \(file.header.revision)")
    } catch {
      guard SystemFile.exists(path) else { return nil }
      condition = .damaged("\(error)")
    }
    header = found
  }

  /// Tells whether it is one of the journal, which ends with `last`. A later one that was `acknowledged` is a state
  /// that the records have lost.
  mutating func fit(to head: JournalDatabase.Head, last: UInt64, acknowledged: UInt64) {
    guard condition == .whole, let header else { return }
    if revision < head.base {
      condition = .unused("it is from before revision \(head.base), where the records begin")
    } else if header.epoch != head.epoch {
      condition = .unused("it is of epoch \(header.epoch)")
    } else if header.schema != head.schema {
      condition = .unused("it is of another schema")
    } else if revision > last, revision > acknowledged {
      condition = .unused("it is from after revision \(last), where the records end")
    } else if revision == head.base, header.digest != head.baseDigest {
      condition = .unused("it is of other records")
    }
  }
}
