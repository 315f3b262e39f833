/// The changes of one operation to keys, collected while it is applied: one change for each key, with the difference of
/// the members for a collection.
struct StepChanges {
  /// The kind of change that observers of a collection are notified of.
  enum CollectionKind {
    /// The difference of the members, as an insertion or a removal; as a setting if it is neither.
    case difference
    /// A setting of the collection as a whole.
    case setting
    /// A replacement of members by others, with the indexes if the collection is ordered.
    case replacement(indexes: [Int]?)
  }

  /// A collection that the operation changes, possibly in several moves.
  fileprivate struct Members {
    let before: MemberList
    var after: MemberList
    var removed: Set<Value> = []
    var inserted: Set<Value> = []
    /// True if a member of an ordered collection was removed and inserted again, possibly at another index.
    var hasMoved = false
    var kind: CollectionKind
    /// The members that a replacement reports, including those that were replaced by themselves.
    var replaced: (removed: [Value], inserted: [Value])?
  }

  /// The changes so far; those of collections do not have the difference of the members yet.
  private var changes: [Commit.KeyChange] = []
  /// The indexes of the collections among the changes.
  private var positions: [ObjectKey: Int] = [:]
  /// The collections, by their index among the changes.
  private var collections: [Int: Members] = [:]

  /// Notes that a key was set.
  mutating func noteSetting(of object: Reference, key: Int, isSilent: Bool) {
    changes.append(Commit.KeyChange(object: object, key: key, isSilent: isSilent, collection: nil))
  }

  /// Notes that the members of a collection have changed.
  mutating func noteMembers(
    of object: Reference, key index: Int, from old: MemberList, to new: MemberList, removed: [Value],
    inserted: [Value], as kind: CollectionKind, isSilent: Bool
  ) {
    let key = ObjectKey(object: object, key: index)
    var members = Members(before: old, after: new, kind: kind)
    if case .replacement = kind { members.replaced = (removed, inserted) }
    guard let position = positions[key] else {
      members.move(removed: removed, inserted: inserted)
      positions[key] = changes.count
      collections[changes.count] = members
      changes.append(Commit.KeyChange(object: object, key: index, isSilent: isSilent, collection: nil))
      return
    }
    changes[position].isSilent = changes[position].isSilent && isSilent
    collections[position]?.after = new
    collections[position]?.move(removed: removed, inserted: inserted)
    collections[position]?.merge(kind)
  }

  /// Returns the changes in the order in which the keys were first touched, each key once.
  ///
  /// Some to-one relationships are set twice, as when a body names both sides of a relationship: the first setting that
  /// is not silent counts. A collection that ends as it began, without having been set, is left out.
  func finished() -> [Commit.KeyChange] {
    guard changes.count > 1 || !collections.isEmpty else { return changes }
    var finished: [Commit.KeyChange?] = []
    var places: [ObjectKey: Int] = [:]
    finished.reserveCapacity(changes.count)
    places.reserveCapacity(changes.count)
    for (position, var change) in changes.enumerated() {
      if let members = collections[position] {
        if members.isUnchanged { continue }
        change.collection = members.change
        if change.collection == nil { change.memberCount = members.after.count }
      }
      let key = ObjectKey(object: change.object, key: change.key)
      if let place = places[key] {
        guard finished[place]?.isSilent == true, !change.isSilent else { continue }
        finished[place] = nil
      }
      places[key] = finished.count
      finished.append(change)
    }
    return finished.compactMap(\.self)
  }
}

extension StepChanges.Members {
  /// Adds a move to the overall difference: a member that was removed and inserted is in neither set, but may have
  /// moved.
  mutating func move(removed: [Value], inserted: [Value]) {
    for member in removed {
      if self.inserted.remove(member) == nil { self.removed.insert(member) }
    }
    for member in inserted {
      if self.removed.remove(member) == nil {
        self.inserted.insert(member)
      } else if after.isOrdered {
        hasMoved = true
      }
    }
  }

  /// Combines the kinds of two moves: any but two differences become a setting.
  mutating func merge(_ kind: StepChanges.CollectionKind) {
    switch (self.kind, kind) {
    case (.difference, .difference): break
    default: self.kind = .setting
    }
  }

  var isUnchanged: Bool {
    guard case .difference = kind, removed.isEmpty, inserted.isEmpty else { return false }
    return before == after
  }

  /// The change, or nil if it is reported as a setting.
  var change: Commit.CollectionChange? {
    switch kind {
    case .setting: return nil
    case .replacement(let indexes):
      guard let replaced else { return nil }
      return Commit.CollectionChange(
        kind: .replacement, indexes: indexes, removed: replaced.removed, inserted: replaced.inserted)
    case .difference:
      if hasMoved, !isOrderKept { return nil }
      if inserted.isEmpty, !removed.isEmpty { return change(.removal, removed, in: before) }
      if removed.isEmpty, !inserted.isEmpty { return change(.insertion, inserted, in: after) }
      return nil
    }
  }

  /// True if the members that were not removed or inserted have kept their order.
  private var isOrderKept: Bool {
    before.lazy.filter { !removed.contains($0) }.elementsEqual(after.lazy.filter { !inserted.contains($0) })
  }

  private func change(
    _ kind: Commit.CollectionChange.Kind, _ members: Set<Value>, in list: MemberList
  ) -> Commit.CollectionChange? {
    var places: [(index: Int, member: Value)] = []
    for member in members {
      guard let index = list.index(of: member) else { return nil }
      places.append((index, member))
    }
    places.sort { $0.index < $1.index }
    let ordered = places.map(\.member)
    return Commit.CollectionChange(
      kind: kind, indexes: list.isOrdered ? places.map(\.index) : nil, removed: kind == .removal ? ordered : [],
      inserted: kind == .insertion ? ordered : [])
  }
}
