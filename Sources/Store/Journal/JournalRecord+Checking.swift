extension JournalRecord {
  /// Throws `invalid` unless the records follow on one another and on a revision, and there is at least one.
  package static func check(_ records: [JournalRecord], follow expected: UInt64) throws(JournalError) {
    guard !records.isEmpty else { throw .invalid("there is nothing to append") }
    for (offset, record) in records.enumerated() where record.revision != expected + 1 + UInt64(offset) {
      throw .invalid("a record of revision \(record.revision) where \(expected + 1 + UInt64(offset)) is due")
    }
  }
}

extension JournalDigest {
  /// The beginning of the chain of a journal that begins anew at a revision under a schema.
  package static func rebased(to revision: UInt64, schema: String) -> JournalDigest {
    JournalDigest(value: revision).linked(to: Array(schema.utf8))
  }
}
