import KeyValueModel

/// What was written while brackets are open, as it stood before each write: one log for all of them, so that a write
/// costs the same however many there are. A bracket only remembers where the log ended at its `willChange`.
struct UndoLog {
  private struct Entry {
    let position: Int
    let record: ObjectRecord?
  }

  /// By object, each in the order of the writes.
  private var entries: [Reference: [Entry]] = [:]
  /// How many writes there were.
  private(set) var count = 0

  /// Notes that an object is about to be written; nil if it is not there.
  mutating func append(_ object: Reference, _ record: ObjectRecord?) {
    entries[object, default: []].append(Entry(position: count, record: record))
    count += 1
  }

  /// Forgets everything: no bracket is open any more.
  mutating func removeAll() {
    guard count > 0 else { return }
    entries = [:]
    count = 0
  }

  /// The object as it stood when the log had `start` entries: what the first write since then found. Nil where it was
  /// not written since; `.some(nil)` where it was not there.
  func record(_ object: Reference, at start: Int) -> ObjectRecord?? {
    guard let entries = entries[object], let last = entries.last, last.position >= start else { return nil }
    return .some(entries[entries.sortedCount { $0.position < start }].record)
  }
}

/// The state as it was when a bracket was opened.
struct StateAtWillChange: ObjectReader {
  let log: UndoLog
  let start: Int
  let state: PastState
  /// The work that reading is part of.
  let work: ReadingWork?

  func record(_ reference: Reference) -> ObjectRecord? {
    guard work?.spend() ?? true else { return nil }
    if let former = log.record(reference, at: start) { return former }
    return state.record(reference)
  }
}
