import KeyValueModel
import TestKit

/// How far the history has to reach back after so many lives with settings of their own.
struct HistoryWindow: Hashable, Sendable {
  /// The fewest revisions that a life since the last check had to keep; that of the last life counts on.
  private var fewest = Int.max
  private var last = Int.max
  /// The oldest revision that there need be history of.
  private var floor = 0

  /// A life begins that keeps so many revisions.
  mutating func keep(_ revisions: Int) {
    last = revisions
    fewest = min(fewest, last)
  }

  /// What is wrong with a recovered server's status; nil where nothing is.
  mutating func check(_ status: Value, revision: Int) -> String? {
    floor = max(floor, revision - fewest)
    fewest = last
    guard let oldest = status["oldest"].text.flatMap(Cursor.init) else { return "no oldest cursor" }
    guard oldest.revision > floor else { return nil }
    return "the history begins at \(oldest), and should at \(floor) or before"
  }
}
