import Glibc

/// The end of a journal as found on opening, after any unacknowledged and incomplete records were cut off.
struct JournalOpening {
  private(set) var last: UInt64
  private(set) var tip: JournalDigest
  private(set) var remarks: [String] = []

  /// Checks the end of the journal. Throws `damaged` if acknowledged records are missing.
  init(_ database: JournalDatabase, _ head: JournalDatabase.Head, _ layout: JournalLayout) throws(JournalError) {
    last = max(head.base, try database.lastRevision() ?? head.base)
    tip = head.baseDigest
    guard let mark = try Self.mark(layout, &remarks) else {
      // The acknowledged revision is unknown: everything has to be as it was written.
      tip = try database.requireDigest(at: last, head)
      return
    }
    guard mark.revision <= last else {
      throw .damaged(
        place: layout.database,
        reason: "it ends with revision \(last), but revision \(mark.revision) was acknowledged")
    }
    // A mark at or before the base was left by a power failure, and proves no more than the base does.
    let known = max(mark.revision, head.base)
    tip = try database.requireDigest(at: known, head)
    if mark.revision > head.base, tip != mark.digest {
      throw .damaged(
        place: "\(layout.database), revision \(known)", reason: "it is not what was acknowledged")
    }
    try checkUnacknowledged(after: known, database, head)
  }

  /// Keeps the records after the last acknowledged one as far as they are intact, and cuts off the rest.
  private mutating func checkUnacknowledged(
    after known: UInt64, _ database: JournalDatabase, _ head: JournalDatabase.Head
  ) throws(JournalError) {
    guard last > known else { return }
    var (end, link) = (known, tip)
    do throws(JournalError) {
      _ = try database.read(after: known, tip, through: last) { record, digest in
        (end, link) = (record.revision, digest)
        return true
      }
    } catch {
      guard case .damaged(let place, let reason) = error else { throw error }
      remarks.append("cut off the unacknowledged records after revision \(end): \(place): \(reason)")
      try database.write(head, removingAfter: end)
    }
    (last, tip) = (end, link)
  }

  private static func mark(
    _ layout: JournalLayout, _ remarks: inout [String]
  ) throws(JournalError) -> DurableWatermark? {
    guard SystemFile.exists(layout.mark) else { return nil }
    let file = try SystemFile(layout.mark, O_RDONLY)
    let mark = try DurableWatermark(contentsOf: file)
    if mark == nil {
      remarks.append("\(layout.mark): it is damaged; the last acknowledged revision is unknown")
    }
    return mark
  }
}
