extension MemberList {
  /// Inserts a member at a place from 0 to `count`. False where it is one already; then nothing changes. The list must
  /// be ordered. O(log n), amortised.
  @discardableResult
  public mutating func insert(_ member: Value, at index: Int) -> Bool {
    precondition(isOrdered, "the places of an unordered list are not for the caller to choose")
    precondition(index >= 0 && index <= count, "no such place")
    guard !contains(member) else { return false }
    insertUnchecked(member, at: index)
    return true
  }

  /// Inserts a member: at the end of an ordered list, in its place of an unordered one. Gives that place, or nil where
  /// it is a member already; then nothing changes. O(log n), amortised.
  @discardableResult
  public mutating func insert(_ member: Value) -> Int? {
    let index: Int
    if isOrdered {
      guard !contains(member) else { return nil }
      index = count
    } else {
      guard let place = freePlace(for: member) else { return nil }
      index = place
    }
    insertUnchecked(member, at: index)
    return index
  }

  /// Takes the member at a place away, which must be at least 0 and less than `count`. O(log n).
  @discardableResult
  public mutating func remove(at index: Int) -> Value {
    precondition(index >= 0 && index < count, "no member at this place")
    switch takeStorage() {
    case .few(var members):
      let member = members.remove(at: index)
      storage = .few(members)
      return member
    case .labelled(var box):
      let member = box[0].remove(at: index)
      storage = box[0].count > Self.treeLimit ? .labelled(box) : .few(box[0].entries.map(\.member))
      return member
    case .sorted(var members):
      let member = members.remove(at: index)
      storage = members.count > Self.treeLimit ? .sorted(members) : .few(Array(members))
      return member
    }
  }

  /// Takes a member away. Gives its former place, nil where it is none. O(log n).
  @discardableResult
  public mutating func remove(_ member: Value) -> Int? {
    guard let index = index(of: member) else { return nil }
    remove(at: index)
    return index
  }

  /// Takes all members away; whether the list is ordered stays. O(1), and what it costs to free what no copy shares.
  public mutating func removeAll() { storage = .few([]) }

  /// Where a new member of an unordered list belongs, nil where it is there already.
  private func freePlace(for member: Value) -> Int? {
    let place: Int
    let found: Value?
    switch storage {
    case .few(let members):
      place = members.firstIndex { !MemberOrder.precedes($0, member) } ?? members.count
      found = place < members.count ? members[place] : nil
    case .sorted(let members):
      place = members.lowerBound(of: member)
      found = place < members.count ? members.element(at: place) : nil
    case .labelled: preconditionFailure("labels in an unordered list")
    }
    guard let found, !MemberOrder.precedes(member, found) else { return place }
    return nil
  }

  private mutating func insertUnchecked(_ member: Value, at index: Int) {
    switch takeStorage() {
    case .few(var members):
      members.insert(member, at: index)
      guard members.count > Self.arrayLimit else {
        storage = .few(members)
        return
      }
      storage = isOrdered ? .labelled([LabelledMembers(members)]) : .sorted(RankedTree(sorted: members))
    case .labelled(var box):
      box[0].insert(member, at: index)
      storage = .labelled(box)
    case .sorted(var members):
      members.insert(member, at: index)
      storage = .sorted(members)
    }
  }

  /// Gives the storage and leaves an empty one, so that what it holds has one owner less and may be changed in place.
  private mutating func takeStorage() -> Storage {
    var taken = Storage.few([])
    swap(&taken, &storage)
    return taken
  }
}
