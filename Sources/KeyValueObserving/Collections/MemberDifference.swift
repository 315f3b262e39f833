import KeyValueModel

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
