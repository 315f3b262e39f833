package import Store

extension PostgresJournal {
  /// See `SharedJournal.nodes()`.
  package func nodes() throws(JournalError) -> [String] {
    try reading { connection throws(PostgresError) in try register.urls(connection) }
  }

  /// See `SharedJournal.vouch(for:)`.
  package func vouch(for nodes: [String]) { register.vouch(for: nodes) }
}
