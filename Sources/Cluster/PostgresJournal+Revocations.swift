package import Store

extension PostgresJournal {
  /// See `TransactionJournal.revocations()`.
  package func revocations() throws(JournalError) -> [Revocation] {
    let found = try reading { connection throws(PostgresError) in
      let result = try connection.execute(
        "SELECT subject, milliseconds, digest FROM keyway.revocations ORDER BY subject", within: options.patience)
      var found: [(revocation: Revocation, digest: UInt64)] = []
      for row in 0..<result.count {
        let subject = String(decoding: result.bytes(row, 0), as: UTF8.self)
        found.append(
          (Revocation(subject: subject, milliseconds: try result.integer(row, 1)), try result.bits(row, 2)))
      }
      return found
    }
    guard found.allSatisfy({ $0.revocation.digest.value == $0.digest }) else {
      throw .damaged(place: "the database, revocations", reason: "they are not what was written")
    }
    return found.map(\.revocation)
  }

  /// See `TransactionJournal.setRevocation(of:to:)`. The other nodes hear that there is a change.
  package func setRevocation(of subject: String, to milliseconds: Int64?) throws(JournalError) {
    let patience = options.patience
    try changing { connection throws(PostgresError) in
      try connection.transaction(within: patience) { () throws(PostgresError) in
        if let milliseconds {
          let revocation = Revocation(subject: subject, milliseconds: milliseconds)
          try connection.execute(
            """
            INSERT INTO keyway.revocations VALUES ($1, $2, $3)
            ON CONFLICT (subject) DO UPDATE SET milliseconds = $2, digest = $3
            """, [.bytes(revocation.key), .integer(milliseconds), .bits(revocation.digest.value)], within: patience)
        } else {
          try connection.execute(
            "DELETE FROM keyway.revocations WHERE subject = $1", [.bytes(Array(subject.utf8))], within: patience)
        }
        try connection.execute("UPDATE keyway.head SET revoked = revoked + 1", within: patience)
      }
    }
    announceChange()
  }
}
