import HashTreeCollections

/// The members of a to-many: distinct values. An ordered list has them in the order that the caller chooses. An
/// unordered list is sorted: references by their bytes, other values by kind and then by value.
///
/// Persistent: a copy costs O(1) and shares everything with the original. Every operation that finds or changes one
/// member costs O(log n). A list of eight members or fewer, which most are, is a plain array.
public struct MemberList: Sendable {
  // This order of the two properties makes a `Value` a word smaller.
  private var storage: Storage
  /// True if the caller chooses the positions of the members.
  public let isOrdered: Bool

  /// The storage of the members.
  fileprivate enum Storage: Sendable {
    /// A few members, of either kind of list.
    case few([Value])
    /// Many members of an ordered list. The array always has one element: it serves as a box that is copied when shared
    /// and changed in place otherwise, which an indirect case never is.
    case labelled([LabelledMembers])
    /// Many members of an unordered list.
    case sorted(RankedTree<MemberOrder>)
  }

  /// The maximum number of members of a plain array. A list that grows beyond it becomes a tree.
  package static var arrayLimit: Int { 8 }
  /// The number of members at which a shrinking tree becomes a plain array again. It is less than `arrayLimit`, so that
  /// a list near the limit does not change its form again and again.
  package static var treeLimit: Int { 4 }

  /// Creates an empty list, without an allocation.
  public init(isOrdered: Bool) {
    self.isOrdered = isOrdered
    storage = .few([])
  }

  /// Creates a list of these members, in this order if the list is ordered; if a member occurs twice, the first
  /// occurrence is kept. O(n) for an ordered list, O(n log n) for an unordered one, O(n) if its members are sorted
  /// already.
  public init(_ members: some Sequence<Value>, isOrdered: Bool) {
    self.isOrdered = isOrdered
    storage = isOrdered ? Self.ordered(members) : Self.unordered(members)
  }

  private static func ordered(_ members: some Sequence<Value>) -> Storage {
    let members = Array(members)
    guard members.count <= arrayLimit else {
      let labelled = LabelledMembers(members)
      return labelled.count > arrayLimit ? .labelled([labelled]) : .few(labelled.entries.map(\.member))
    }
    var few: [Value] = []
    few.reserveCapacity(members.count)
    for member in members where !few.contains(member) { few.append(member) }
    return .few(few)
  }

  private static func unordered(_ members: some Sequence<Value>) -> Storage {
    // The sort is stable: the first of equal members remains the first.
    let sorted = members.sorted(by: MemberOrder.precedes)
    var unique: [Value] = []
    unique.reserveCapacity(sorted.count)
    for member in sorted {
      if let last = unique.last, !MemberOrder.precedes(last, member) { continue }
      unique.append(member)
    }
    return unique.count > arrayLimit ? .sorted(RankedTree(sorted: unique)) : .few(unique)
  }

  /// Returns true if the value is a member. O(log n).
  public func contains(_ member: Value) -> Bool {
    switch storage {
    case .few: index(of: member) != nil
    case .labelled(let box): box[0].contains(member)
    case .sorted(let members): members.contains(member)
    }
  }

  /// The position of a member; nil if the value is not a member. O(log n).
  public func index(of member: Value) -> Int? {
    switch storage {
    case .few(let members): members.firstIndex(of: member)
    case .labelled(let box): box[0].index(of: member)
    case .sorted(let members): members.rank(of: member)
    }
  }

  /// The members in order. O(n), or O(1) for a plain array.
  public var array: [Value] {
    switch storage {
    case .few(let members): members
    case .labelled(let box): box[0].entries.map(\.member)
    case .sorted(let members): Array(members)
    }
  }

  // MARK: Changing

  /// Inserts a member at a position from 0 to `count`. Returns false, and changes nothing, if the value is a member
  /// already. The list must be ordered. O(log n), amortized.
  @discardableResult
  public mutating func insert(_ member: Value, at index: Int) -> Bool {
    precondition(isOrdered, "the places of an unordered list are not for the caller to choose")
    precondition(index >= 0 && index <= count, "no such place")
    guard !contains(member) else { return false }
    insertUnchecked(member, at: index)
    return true
  }

  /// Inserts a member: at the end of an ordered list, or at its sorted position in an unordered one. Returns the
  /// position; returns nil, and changes nothing, if the value is a member already. O(log n), amortized.
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

  /// Removes and returns the member at a position, which must be at least 0 and less than `count`. O(log n).
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

  /// Removes a member. Returns its former position, or nil if the value was not a member. O(log n).
  @discardableResult
  public mutating func remove(_ member: Value) -> Int? {
    guard let index = index(of: member) else { return nil }
    remove(at: index)
    return index
  }

  /// Removes all members; the list stays ordered or unordered. O(1), plus the cost of freeing storage that no copy
  /// shares.
  public mutating func removeAll() { storage = .few([]) }

  /// The position at which a new member of an unordered list belongs; nil if the value is a member already.
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

  /// Returns the storage and leaves an empty one, so that the storage has one owner less and can be changed in place.
  private mutating func takeStorage() -> Storage {
    var taken = Storage.few([])
    swap(&taken, &storage)
    return taken
  }

  // MARK: Size

  /// The memory of the list in bytes, without the texts of its members. O(1).
  var structureBytes: Int {
    switch storage {
    case .few(let members):
      Allocation.array(of: Allocation.grown(members.count), stride: MemoryLayout<Value>.stride)
    case .labelled(let box): Allocation.labelledMember * box[0].count
    case .sorted(let members): Allocation.sortedMember * members.count
    }
  }

  /// Returns the growth of an object whose collection changes from `old` to this list, from the members removed and
  /// inserted.
  func growth(
    from old: MemberList, removed: some Sequence<Value>, inserted: some Sequence<Value>
  ) -> ValueSize {
    var growth = ValueSize(ofMembers: inserted) - ValueSize(ofMembers: removed)
    growth.memoryBytes += structureBytes - old.structureBytes
    return growth
  }

  // MARK: Invariants

  /// Returns the inconsistencies of the list: of its trees and labels, its order, a form that does not fit its size,
  /// and duplicate members; empty if there are none. For tests; O(n).
  package func checkInvariants() -> [String] {
    var faults: [String] = []
    let members = Array(self)
    if Set(members).count != count { faults.append("\(count) members, of which only \(Set(members).count) differ") }
    if !isOrdered, !zip(members, members.dropFirst()).allSatisfy(MemberOrder.precedes) {
      faults.append("the members are not in order")
    }
    switch storage {
    case .few(let members):
      if members.count > Self.arrayLimit { faults.append("an array of \(members.count)") }
    case .labelled(let box):
      if !isOrdered { faults.append("labels in an unordered list") }
      faults += box[0].checkInvariants()
    case .sorted(let sorted):
      if isOrdered { faults.append("an ordered list that is sorted") }
      faults += sorted.checkInvariants()
    }
    if case .few = storage {} else if count <= Self.treeLimit { faults.append("a tree of \(count)") }
    return faults
  }
}

extension MemberList: RandomAccessCollection {
  /// The index of the first member.
  public var startIndex: Int { 0 }
  /// The index after the last member.
  public var endIndex: Int { count }

  /// The number of members. O(1).
  public var count: Int {
    switch storage {
    case .few(let members): members.count
    case .labelled(let box): box[0].count
    case .sorted(let members): members.count
    }
  }

  /// The member at an index. O(log n); an iteration is faster than a subscript for each index.
  public subscript(index: Int) -> Value {
    switch storage {
    case .few(let members): members[index]
    case .labelled(let box): box[0].entries.element(at: index).member
    case .sorted(let members): members.element(at: index)
    }
  }

  /// The members in order.
  public func makeIterator() -> Iterator { Iterator(storage) }

  /// Iterates over the members; a step costs O(1) on average.
  public struct Iterator: IteratorProtocol, Sendable {
    private var few: [Value] = []
    private var position = 0
    private var labelled: RankedTree<LabelledMembers.LabelOrder>.Iterator?
    private var sorted: RankedTree<MemberOrder>.Iterator?

    fileprivate init(_ storage: Storage) {
      switch storage {
      case .few(let members): few = members
      case .labelled(let box): labelled = box[0].entries.makeIterator()
      case .sorted(let members): sorted = members.makeIterator()
      }
    }

    /// The next member; nil after the last one.
    public mutating func next() -> Value? {
      if position < few.count {
        defer { position += 1 }
        return few[position]
      }
      return labelled?.next()?.member ?? sorted?.next()
    }
  }
}

extension MemberList: Hashable {
  /// Returns true if both have the same members in the same order, whether chosen or sorted. O(n), or O(1) for copies
  /// of one list that have not changed since.
  public static func == (left: MemberList, right: MemberList) -> Bool {
    switch (left.storage, right.storage) {
    case (.few(let left), .few(let right)): left == right
    case (.labelled(let left), .labelled(let right)) where left[0].entries.isCopy(of: right[0].entries): true
    case (.sorted(let left), .sorted(let right)) where left.isCopy(of: right): true
    default: left.count == right.count && left.elementsEqual(right)
    }
  }

  /// Hashes the members, which equality compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(count)
    for member in self { hasher.combine(member) }
  }
}
