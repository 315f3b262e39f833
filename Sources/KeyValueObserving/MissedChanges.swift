public import KeyValueModel

/// The changes that a subscriber has missed of the observations of one object, because a cell is off screen or its
/// reader is slow. They are merged, not queued.
///
/// However many changes are missed, there is one entry for each key path: a count, and the names of at most
/// `memberLimit` members that were inserted or removed. In addition, the values that the observations showed at the
/// beginning are held.
public struct MissedChanges: Sendable {
  private struct Entry {
    var count = 0
    /// All members that were inserted or removed; nil once the value was set, or if there are too many.
    var touched: Set<Value>? = []

    /// Adds later changes with the members that were inserted or removed, nil if these are not known.
    mutating func absorb(_ changes: Int, touching members: (some Sequence<Value>)?) {
      count += changes
      guard touched != nil else { return }
      guard let members else { return touched = nil }
      touched?.formUnion(members)
      if touched?.count ?? 0 > MissedChanges.memberLimit { touched = nil }
    }
  }

  /// The maximum number of inserted or removed members that are remembered per collection. Beyond it, the collection is
  /// reported as a whole.
  public static var memberLimit: Int { 1_000 }

  private let delivered: DeliveredValues
  private var entries: [String: Entry] = [:]
  /// The number of commits that wait to be delivered.
  public private(set) var commits = 0
  /// The observed object, if it was deleted meanwhile.
  public private(set) var gone: Reference?

  /// Creates an instance without missed changes: these observations, all of one object, have delivered the state of
  /// `reader`.
  public init(_ observations: [Observation], in reader: some ObjectReader) {
    self.init(since: DeliveredValues(observations, in: reader))
  }

  /// Creates an instance without missed changes since the delivery of these values.
  public init(since delivered: DeliveredValues) {
    self.delivered = delivered
  }

  /// The approximate number of bytes of memory that the delivered values take.
  package var deliveredBytes: Int { delivered.textBytes }

  /// Merges the changes that one commit would have delivered. They must be complete: an overflowed event cannot be
  /// merged.
  public mutating func absorb(_ changes: some Sequence<Change>, gone: Reference?) {
    commits += 1
    if let gone {
      self.gone = gone
      entries = [:]
    }
    for change in changes where !change.isPrior {
      entries[change.observation.keyPath.text, default: Entry()].absorb(1, touching: change.touched)
    }
  }

  /// Merges the later missed changes of the same observations, as if they had been absorbed here.
  public mutating func merge(_ later: MissedChanges) {
    commits += later.commits
    if let gone = later.gone {
      self.gone = gone
      entries = [:]
    }
    for (path, entry) in later.entries {
      entries[path, default: Entry()].absorb(entry.count, touching: entry.touched)
    }
  }

  /// Returns one merged change for each observation that has any, in the order of `observations`, which are those of
  /// the beginning. Each leads from the value shown at the beginning to the value in `reader`.
  ///
  /// A to-many at the end of a path is reported by the members that were inserted, removed or replaced, if one kind of
  /// change can express that and if these are fewer than the members of the collection now. Otherwise, and if the path
  /// may have led elsewhere without notice, the change is a setting of the whole. For every other value it is a
  /// setting. A change is reported even if the value is the same again. The cost is that of the reported members and
  /// O(log n) for each member that was inserted or removed; it does not depend on the length of the collection.
  public func coalesced(_ observations: [Observation], cell: String?, in reader: some ObjectReader) -> [Change] {
    observations.compactMap { observation in
      guard let entry = entries[observation.keyPath.text] else { return nil }
      // A path that the cell names twice was counted twice.
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

/// The values that the observations of one object have delivered at one moment, as far as they are needed to determine
/// later what has changed.
///
/// These are the value if `old` was requested, and the members if the path ends at a to-many; members are shared, not
/// copied. No other values are read.
public struct DeliveredValues: Sendable {
  private var values: [String: Value] = [:]

  /// Creates the delivered values of `observations`, all of one object, in the state of `reader`. A path that is named
  /// twice is stored once.
  public init(_ observations: [Observation], in reader: some ObjectReader) {
    for observation in observations where values[observation.keyPath.text] == nil {
      if observation.options.contains(.old) {
        values[observation.keyPath.text] = observation.knownValue(in: reader)
      } else if let members = observation.followedMembers(in: reader) {
        values[observation.keyPath.text] = .members(members)
      }
    }
  }

  /// Creates an instance without values.
  public init() {}

  /// The number of bytes of text in the stored values.
  fileprivate var textBytes: Int { values.values.reduce(0) { $0 + $1.textBytes } }

  /// Returns the value that an observation showed; nil if it was not stored.
  fileprivate func value(of observation: Observation) -> Value? { values[observation.keyPath.text] }

  /// Returns the members that an observation showed; nil if they were not stored, or if there was no collection.
  fileprivate func members(of observation: Observation) -> MemberList? {
    guard case .members(let list) = value(of: observation) else { return nil }
    return list
  }
}

extension Observation {
  /// Returns the members at the end of a path that ends at a to-many, has no operator and notifies of all changes of
  /// the members; nil for any other path, and behind a null. O(length of the path).
  ///
  /// A path with a computed key or a key that `notifies: manual` does not notify of all changes: it may silently lead
  /// elsewhere, or lead away while the members change. If the path has no such key now, and no `setting` has been
  /// notified since some moment, it has led to the same collection since then.
  fileprivate func followedMembers(in reader: some ObjectReader) -> MemberList? {
    // The members alone do not show whether their owner may be read.
    guard viewer == nil || keyPath.keys.count == 1, keyPath.operation == nil, case .list = keyPath.type else {
      return nil
    }
    var owner = object
    var rest = keyPath.keys[...]
    while let key = rest.popFirst() {
      guard let record = reader.record(owner), record.entity.keys[key].storage != nil,
        record.entity.notifying(key) != .manual
      else { return nil }
      switch reader.value(of: record, owner, key: key) {
      case .reference(let next): owner = next
      case .members(let list): return rest.isEmpty ? list : nil
      default: return nil
      }
    }
    return nil
  }
}

/// The difference between the members of a collection at two moments, expressed as one change.
struct MemberDifference: Hashable {
  /// The kind of the change: any but a setting.
  let kind: Change.Kind
  /// The indexes, ascending, in the collection after an insertion and before a removal; nil if it is not ordered.
  let indexes: [Int]?
  /// The removed members, in order.
  let removed: [Value]
  /// The inserted members, in order.
  let inserted: [Value]

  private init(kind: Change.Kind, indexes: [Int]?, removed: [Value] = [], inserted: [Value] = []) {
    self.kind = kind
    self.indexes = indexes
    self.removed = removed
    self.inserted = inserted
  }

  /// Creates the difference between two moments of one collection. Nil if it names at least as many members as the
  /// collection has at the later moment, if no kind can express it, and if there is no difference.
  ///
  /// `touched` has every member that was inserted, removed or moved between the two, and may have others. Costs O(log
  /// n) for each of them and for each member that the difference names.
  init?(from then: MemberList, to now: MemberList, touched: Set<Value>) {
    let before = Self.places(of: touched, in: then)
    let after = Self.places(of: touched, in: now)
    let difference =
      now.isOrdered ? Self.ordered(then, before, now, after) : Self.unordered(then, before, now, after)
    guard let difference, difference.removed.count + difference.inserted.count < now.count else { return nil }
    self = difference
  }

  private struct Place {
    let index: Int
    let member: Value
  }

  /// Returns the places of those of `members` that are in a list, ascending.
  private static func places(of members: Set<Value>, in list: MemberList) -> [Place] {
    members
      .compactMap { member in list.index(of: member).map { Place(index: $0, member: member) } }
      .sorted { $0.index < $1.index }
  }

  // MARK: Unordered

  private static func unordered(
    _ then: MemberList, _ before: [Place], _ now: MemberList, _ after: [Place]
  ) -> MemberDifference? {
    let removed = before.map(\.member).filter { !now.contains($0) }
    let inserted = after.map(\.member).filter { !then.contains($0) }
    if removed.isEmpty, inserted.isEmpty { return nil }
    let kind: Change.Kind = removed.isEmpty ? .insertion : inserted.isEmpty ? .removal : .replacement
    return MemberDifference(kind: kind, indexes: nil, removed: removed, inserted: inserted)
  }

  // MARK: Ordered

  private static func ordered(
    _ then: MemberList, _ before: [Place], _ now: MemberList, _ after: [Place]
  ) -> MemberDifference? {
    if now.count > then.count {
      return additions(in: after, to: then, count: now.count - then.count).map { places in
        MemberDifference(kind: .insertion, indexes: places.map(\.index), inserted: places.map(\.member))
      }
    }
    if now.count < then.count {
      return additions(in: before, to: now, count: then.count - now.count).map { places in
        MemberDifference(kind: .removal, indexes: places.map(\.index), removed: places.map(\.member))
      }
    }
    guard let places = differingPlaces(before, after, fewerThan: (now.count + 1) / 2), !places.isEmpty else {
      return nil
    }
    return MemberDifference(
      kind: .replacement, indexes: places, removed: places.map { then[$0] }, inserted: places.map { now[$0] })
  }

  /// Returns the touched members that a longer list has in addition to a shorter one with `count` fewer members; nil
  /// unless the other members are exactly the shorter list, in its order.
  private static func additions(in longer: [Place], to shorter: MemberList, count: Int) -> [Place]? {
    var added: [Place] = []
    for place in longer {
      guard let index = shorter.index(of: place.member) else {
        added.append(place)
        continue
      }
      // Untouched members keep their order. So all are in order if each touched member has as many members before it as
      // in the shorter list.
      guard index == place.index - added.count else { return nil }
    }
    return added.count == count ? added : nil
  }

  /// Returns the indexes at which two lists of the same length have different members; nil if these are not fewer than
  /// `limit`.
  ///
  /// Untouched members have the same order in both lists. Such a member has the same index in both exactly if as many
  /// touched members stand before it in one list as in the other.
  private static func differingPlaces(_ before: [Place], _ after: [Place], fewerThan limit: Int) -> [Int]? {
    var differing: [Int] = []
    var (left, right) = (before[...], after[...])
    var start = 0
    while let next = [left.first?.index, right.first?.index].compactMap(\.self).min() {
      if left.count != right.count {
        guard differing.count + (next - start) < limit else { return nil }
        differing += start..<next
      }
      let old = left.first?.index == next ? left.removeFirst().member : nil
      let new = right.first?.index == next ? right.removeFirst().member : nil
      if old != new { differing.append(next) }
      start = next + 1
    }
    return differing.count < limit ? differing : nil
  }
}
