public import KeyValueModel

/// What a subscriber has missed of the observations of one object, because a cell is off screen or its reader is slow.
/// Remembered, not queued.
///
/// However much is missed, it holds one entry for each key path: a count, and at most `memberLimit` names of members
/// that came or went; besides that, what the observations showed in the beginning.
public struct PendingChanges: Sendable {
  private struct Entry {
    var count = 0
    /// Every member that came or went; nil once the value was set, or when there are too many.
    var touched: Set<Value>? = []

    mutating func absorb(_ change: Change) {
      count += 1
      guard touched != nil else { return }
      guard let members = change.touched else { return touched = nil }
      touched?.formUnion(members)
      if touched?.count ?? 0 > PendingChanges.memberLimit { touched = nil }
    }

    mutating func merge(_ later: Entry) {
      count += later.count
      guard let members = later.touched else { return touched = nil }
      touched?.formUnion(members)
      if touched?.count ?? 0 > PendingChanges.memberLimit { touched = nil }
    }
  }

  /// The most members of one collection that are remembered to have come or gone. After more than that, the collection
  /// is told as a whole.
  public static var memberLimit: Int { 1_000 }

  private let delivered: DeliveredValues
  private var entries: [String: Entry] = [:]
  /// How many commits wait to be delivered.
  public private(set) var commits = 0
  /// The observed object, where it was deleted meanwhile.
  public private(set) var gone: Reference?

  /// Nothing is pending yet: these observations, all of one object, have delivered what `reader` has.
  public init(_ observations: [Observation], in reader: some ObjectReader) {
    self.init(since: DeliveredValues(observations, in: reader))
  }

  /// Nothing is pending yet since that moment.
  public init(since delivered: DeliveredValues) {
    self.delivered = delivered
  }

  /// About how many bytes of memory it takes to remember what was delivered.
  package var deliveredBytes: Int { delivered.textBytes }

  /// Takes in what one commit would have told. It must be all of it: of an event that is overflowed nothing can be
  /// remembered.
  public mutating func absorb(_ changes: some Sequence<Change>, gone: Reference?) {
    commits += 1
    if let gone {
      self.gone = gone
      entries = [:]
    }
    for change in changes where !change.isPrior {
      entries[change.observation.keyPath.text, default: Entry()].absorb(change)
    }
  }

  /// Takes in what the same observations missed after it, as if all of it had been absorbed here.
  public mutating func merge(_ later: PendingChanges) {
    commits += later.commits
    if let gone = later.gone {
      self.gone = gone
      entries = [:]
    }
    for (path, entry) in later.entries { entries[path, default: Entry()].merge(entry) }
  }

  /// One change for each observation that has any, in the order of `observations`, which are those of the beginning:
  /// from what it showed then to what it is in `reader`.
  ///
  /// A to-many at the end of a path is told by the members that came, went or were replaced, where one kind can say
  /// that and where these are fewer than the collection has now; otherwise, and wherever a path may lead elsewhere
  /// unseen, as a setting of the whole. Everything else is a setting. That something happened is told also where
  /// everything is again as it was. Costs what it tells and O(log n) for each member that came or went, not the length
  /// of the collection.
  public func coalesced(_ observations: [Observation], cell: String?, in reader: some ObjectReader) -> [Change] {
    observations.compactMap { observation in
      guard let entry = entries[observation.keyPath.text] else { return nil }
      // A path that the cell names twice was told as often.
      let copies = observations.count { $0.keyPath.text == observation.keyPath.text }
      var change = self.change(of: observation, entry, cell: cell, in: reader)
      change.coalesced = entry.count / copies
      return change
    }
  }

  private func change(
    of observation: Observation, _ entry: Entry, cell: String?, in reader: some ObjectReader
  ) -> Change {
    guard let touched = entry.touched, let then = delivered.members(of: observation),
      let now = observation.followedMembers(in: reader),
      let difference = MemberDifference(from: then, to: now, touched: touched)
    else {
      return Change(
        of: observation, cell: cell, old: delivered.value(of: observation), new: observation.knownValue(in: reader))
    }
    return Change(
      of: observation, cell: cell, kind: difference.kind, indexes: difference.indexes, removed: difference.removed,
      inserted: difference.inserted)
  }
}
