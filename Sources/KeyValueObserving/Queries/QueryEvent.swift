package import KeyValueModel

/// What one commit did to one live query, for all its observers.
package struct QueryEvent: Sendable {
  /// What happened.
  package enum Outcome: Sendable {
    /// This became of the rows.
    case content(QueryContent)
    /// The filter has come to cost more than it may: this is the last event of the query.
    case failed(ModelError)
  }

  /// The query.
  package let query: Query
  /// The commit's revision.
  package let revision: Revision
  /// The observers, each as often as it has cells that show the query.
  package let observers: Set<QueryObserver>
  /// What happened.
  package let outcome: Outcome
}
