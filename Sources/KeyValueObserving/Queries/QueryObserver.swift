/// What observes a live query: an observer as a whole, or one of its cells.
package struct QueryObserver: Hashable, Sendable {
  /// The observer that is notified.
  package let id: ObserverID
  /// The cell that shows the query, where the observer has cells.
  package let cell: String?

  /// An observer, or with a name one of its cells.
  package init(id: ObserverID, cell: String?) {
    self.id = id
    self.cell = cell
  }
}
