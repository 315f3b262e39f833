/// What one operation does to keys, gathered while it is applied: one change for each key, with what became of the
/// members where it is a collection.
struct StepChanges {
  /// What observers of a collection are notified of.
  enum CollectionKind {
    /// Of what came and went, by whichever kind can say it.
    case difference
    /// That it was set as a whole.
    case setting
    /// That members were put in the place of others; with the places, where the collection is ordered.
    case replacement(indexes: [Int]?)
  }

  /// A collection that the operation changes, perhaps in several moves.
  fileprivate struct Members {
    let before: MemberList
    var after: MemberList
    var removed: Set<Value> = []
    var inserted: Set<Value> = []
    /// Whether a member of an ordered collection went and came back, perhaps to another place.
    var hasMoved = false
    var kind: CollectionKind
    /// What a replacement reports: also members that were replaced by themselves.
    var replaced: (removed: [Value], inserted: [Value])?
  }

  /// The changes so far, those of collections without what became of the members.
  private var changes: [Commit.KeyChange] = []
  /// Where the collections stand among the changes.
  private var positions: [ObjectKey: Int] = [:]
  /// The collections, by where they stand among the changes.
  private var collections: [Int: Members] = [:]

  /// Notes that a key was set.
  mutating func noteSetting(of object: Reference, key: Int, isSilent: Bool) {
    changes.append(Commit.KeyChange(object: object, key: key, isSilent: isSilent, collection: nil))
  }

  /// Notes that a collection has other members.
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

  /// The changes in the order in which the keys were first touched, each key once: some to-ones are set twice, as when
  /// a body names both sides of a relationship. Of such a one the first setting counts that is not silent. A collection
  /// that ends as it began, without having been set, is not among them.
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
  /// What came and went on the whole: a member that goes and comes back has done neither, or has moved.
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

  /// Two moves of different kinds are more than one kind can say.
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

  /// The change, or nil where it is reported as a setting.
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

  /// Whether those that were there and still are stand in the same order.
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
