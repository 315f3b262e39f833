/// A state as one request reads it: what it looks at is counted, and stops where that is too much; see `ReadingWork`.
package struct MeteredState: ObjectReader {
  /// The state that is read.
  package let state: ModelState
  private let meter: ReadingWork

  /// A state that is read as part of some work.
  package init(_ state: ModelState, _ work: ReadingWork) {
    self.state = state
    meter = work
  }

  /// The work that reading takes from.
  package var work: ReadingWork? { meter }

  /// The object of this name; a step. Nil where there is none, and for every object once the work has stopped.
  package func record(_ reference: Reference) -> ObjectRecord? {
    meter.spend() ? state.record(reference) : nil
  }
}
