package import KeyValueModel

/// Merged contents: for subscribers that missed some, and for a query that was changed.
extension QueryContent {
  /// One content that turns a list into a later one: the same as all the contents between them, except for rows that
  /// came and went again.
  ///
  /// `old` is the result at the revision `then`; `new` that of the same query, or of another one that takes its place,
  /// in `state` at the revision `now`. Costs little more than what differs, or all of both windows where the queries
  /// differ.
  package convenience init(
    from old: QueryResult, at then: Revision, to new: QueryResult, in state: some ObjectReader, at now: Revision
  ) {
    let (rows, sections) = QueryDifference(from: old, to: new).changes()
    self.init(
      from: old, to: new, revision: now, writer: nil,
      changes: rows.map { change in
        change.explained(in: state) { state.record($0).map { $0.createdAt > then } ?? false }
      },
      sectionChanges: sections)
  }

  /// How many rows at the most turn one result into the other. Costs O(n) in nodes of the rows, not in rows.
  package static func size(from old: QueryResult, to new: QueryResult) -> Int {
    QueryDifference(from: old, to: new).size
  }
}
