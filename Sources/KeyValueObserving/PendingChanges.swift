public import KeyValueModel

/// What a cell that is off screen has not been told: remembered, not queued, so that it holds one entry for each
/// observation however long nobody looks.
public struct PendingChanges: Sendable {
  private struct Entry {
    var count: Int
    let change: Change
  }

  private var entries: [String: Entry] = [:]
  /// How many commits wait to be told.
  public private(set) var commits = 0
  /// The cell's object, where it was deleted meanwhile.
  public private(set) var gone: Reference?

  /// Nothing pending.
  public init() {}

  /// Takes in what one commit would have told the cell.
  public mutating func absorb(_ changes: some Sequence<Change>, gone: Reference?) {
    commits += 1
    if let gone {
      self.gone = gone
      entries = [:]
    }
    for change in changes where !change.isPrior {
      let path = change.observation.keyPath.text
      // The first change keeps its old value: what stood there before any of them.
      entries[path, default: Entry(count: 0, change: change)].count += 1
    }
  }

  /// One change for each observation that has any, with the present value, in the order of `observations`.
  public func coalesced(_ observations: [Observation], cell: String?, in reader: some ObjectReader) -> [Change] {
    observations.compactMap { observation in
      guard let entry = entries[observation.keyPath.text] else { return nil }
      // A path that the cell names twice was told as often.
      let copies = observations.count { $0.keyPath.text == observation.keyPath.text }
      return Change(
        cell: cell, observation: observation, old: entry.change.wholeOld ?? entry.change.old,
        new: observation.options.contains(.new) ? observation.value(in: reader) : nil, isPrior: false,
        coalesced: entry.count / copies)
    }
  }
}
