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

    /// Takes in later changes with the members that came or went, nil where these are not known.
    mutating func absorb(_ changes: Int, touching members: (some Sequence<Value>)?) {
      count += changes
      guard touched != nil else { return }
      guard let members else { return touched = nil }
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
      entries[change.observation.keyPath.text, default: Entry()].absorb(1, touching: change.touched)
    }
  }

  /// Takes in what the same observations missed after it, as if all of it had been absorbed here.
  public mutating func merge(_ later: PendingChanges) {
    commits += later.commits
    if let gone = later.gone {
      self.gone = gone
      entries = [:]
    }
    for (path, entry) in later.entries {
      entries[path, default: Entry()].absorb(entry.count, touching: entry.touched)
    }
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

/// What the observations of one object have delivered at one moment: as much of it as it takes to say later what has
/// changed.
///
/// That is the value where `old` was asked for, and the members where the path ends at a to-many, which are shared and
/// not copied. Of everything else nothing is read.
public struct DeliveredValues: Sendable {
  private var values: [String: Value] = [:]

  /// What `observations`, all of one object, show as `reader` has it. A path that is named twice is kept once.
  public init(_ observations: [Observation], in reader: some ObjectReader) {
    for observation in observations where values[observation.keyPath.text] == nil {
      if observation.options.contains(.old) {
        values[observation.keyPath.text] = observation.knownValue(in: reader)
      } else if let members = observation.followedMembers(in: reader) {
        values[observation.keyPath.text] = .members(members)
      }
    }
  }

  /// Nothing is known.
  public init() {}

  /// How many bytes of text the values have that are kept.
  fileprivate var textBytes: Int { values.values.reduce(0) { $0 + $1.textBytes } }

  /// The value that an observation showed; nil where it was not kept.
  fileprivate func value(of observation: Observation) -> Value? { values[observation.keyPath.text] }

  /// The members that an observation showed; nil where they were not kept, or where there was no collection.
  fileprivate func members(of observation: Observation) -> MemberList? {
    guard case .members(let list) = value(of: observation) else { return nil }
    return list
  }
}

extension Observation {
  /// The members at the end of a path that ends at a to-many, without operator, and that tells everything that becomes
  /// of them; nil for any other path, and behind a null. O(length of the path).
  ///
  /// A path with a computed key or one that `notifies: manual` does not tell everything: it may lead elsewhere in
  /// silence, or look away while the members change. Where there is none of these now, and no `setting` has been told
  /// since some moment, the path has led to the same collection ever since then.
  fileprivate func followedMembers(in reader: some ObjectReader) -> MemberList? {
    // Whether the owner may be read is not known from the members.
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

/// What has become of the members of a collection from one moment to another, said as one change.
struct MemberDifference: Hashable {
  /// What sort of change it is: any but a setting.
  let kind: Change.Kind
  /// The places, ascending, in the collection after an insertion and before a removal; nil where it is not ordered.
  let indexes: [Int]?
  /// The members that went, in order.
  let removed: [Value]
  /// The members that came, in order.
  let inserted: [Value]

  private init(kind: Change.Kind, indexes: [Int]?, removed: [Value] = [], inserted: [Value] = []) {
    self.kind = kind
    self.indexes = indexes
    self.removed = removed
    self.inserted = inserted
  }

  /// The difference between two moments of one collection; nil where it names as many members as the later one has or
  /// more, where no kind can say it, and where there is none.
  ///
  /// `touched` has every member that came, went or was moved between the two, and may have others. Costs O(log n) for
  /// each of them and each that is named.
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

  /// Where those of `members` stand that are in a list, ascending.
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

  /// The touched members of a list that has `count` members more than a shorter one, without those of the shorter one;
  /// nil unless the others are the shorter one, in its order.
  private static func additions(in longer: [Place], to shorter: MemberList, count: Int) -> [Place]? {
    var added: [Place] = []
    for place in longer {
      guard let index = shorter.index(of: place.member) else {
        added.append(place)
        continue
      }
      // Those that were not touched are in order: so are all, if each touched one has as many before it as it had.
      guard index == place.index - added.count else { return nil }
    }
    return added.count == count ? added : nil
  }

  /// The places at which two lists of one length have different members; nil where there are not fewer than `limit`.
  ///
  /// Those that were not touched follow one another in the same order in both: they stand at the same places wherever
  /// as many touched ones stand before them in both, and at no place else.
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
