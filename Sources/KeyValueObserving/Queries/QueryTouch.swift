import KeyValueModel

/// What one commit did that may concern a query.
struct QueryTouch {
  /// Objects that may be rows: made, deleted, or set in a key that the query reads of them.
  var objects: Set<Reference> = []
  /// What was set of what the query reads, in the order of the operations; only for queries that read beyond their
  /// rows.
  var changes: [Commit.KeyChange] = []
}
