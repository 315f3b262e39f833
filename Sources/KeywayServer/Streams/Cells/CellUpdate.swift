import KeyValueModel
import KeyValueObserving

/// What cells of one stream receive that is not the event of one commit, all of it as of one revision. Bounded: what is
/// over the limit is not even evaluated.
struct CellUpdate {
  /// Their first states.
  private(set) var initial: [Change] = []
  /// What they missed, merged.
  private(set) var coalesced: [Change] = []
  /// First rows of live queries, and what became of them, merged.
  private(set) var queries: [QueryNotification] = []
  /// The objects that they lost.
  private(set) var gone: [ObserverEvent.Gone] = []
  private let limit: Int
  private var textBytes = 0

  /// Nothing yet, of at most so many bytes.
  init(limit: Int = .max) { self.limit = limit }

  /// How many changes, live queries and ends there are.
  var count: Int { initial.count + coalesced.count + queries.count + gone.count }

  /// The cells that receive something.
  var cells: Set<String> {
    Set((initial + coalesced).map { $0.cell ?? "" }).union(queries.map { $0.cell ?? "" })
      .union(gone.map { $0.cell ?? "" })
  }

  /// Whether the values are certainly longer than the limit. Then some may be missing.
  var isTooLong: Bool { textBytes > limit }

  /// Whether the events are certainly no longer than the limit: JSON takes at most six bytes for one of text, and a
  /// change has little else.
  var isShort: Bool { queries.isEmpty && textBytes * 6 + initial.count * 16_384 <= limit }

  /// Adds the first states of what a cell observes.
  mutating func addInitial(_ observations: [Observation], of cell: String, in reader: any ObjectReader) {
    for observation in observations where !isTooLong { addInitial(observation.initialChange(cell: cell, in: reader)) }
  }

  /// Adds a first state.
  mutating func addInitial(_ change: Change) {
    textBytes += change.textBytes
    initial.append(change)
  }

  /// Adds what a cell missed.
  mutating func addCoalesced(_ changes: [Change]) {
    for change in changes { textBytes += change.textBytes }
    coalesced += changes
  }

  /// Adds a live query's rows, or what became of them.
  mutating func add(_ notification: QueryNotification) { queries.append(notification) }

  /// Adds an object that a cell has lost.
  mutating func add(_ lost: ObserverEvent.Gone) { gone.append(lost) }
}
