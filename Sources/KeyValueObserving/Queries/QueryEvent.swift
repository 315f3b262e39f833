package import KeyValueModel

/// What one commit did to one live query, for all who watch it.
package struct QueryEvent: Sendable {
  /// What happened.
  package enum Outcome: Sendable {
    /// This became of the rows.
    case content(QueryContent)
    /// The filter has come to cost more than it may: nobody is told anything more of this query.
    case failed(ModelError)
  }

  /// The query.
  package let query: Query
  /// The commit's revision.
  package let revision: Revision
  /// Who is told; who watches often is there as often as it has cells that do.
  package let observers: Set<QueryObserver>
  /// What happened.
  package let outcome: Outcome
}
