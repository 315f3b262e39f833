/// Somebody who watches a live query: an observer as a whole, or one of its cells.
package struct QueryWatcher: Hashable, Sendable {
  /// Who is told.
  package let observer: ObserverID
  /// The cell that shows it, where the observer has cells.
  package let cell: String?

  /// An observer, or with a name one of its cells.
  package init(observer: ObserverID, cell: String?) {
    self.observer = observer
    self.cell = cell
  }
}
