package import HashTreeCollections

/// The members of a long ordered list. Each member has a label, and labels ascend with the positions, so that the
/// member at a position and the position of a member are both found in O(log n).
///
/// A new first or last member gets a label at a wide gap from its neighbour, a member in between the label in the
/// middle of its neighbours' labels. If two neighbours have no label between them, the members around them get new
/// labels; see `makeRoom`.
package struct LabelledMembers: Sendable {
  /// A member with its label.
  package struct Entry: Sendable {
    /// The label by which the position of the member is found.
    package var label: UInt128
    /// The member.
    package let member: Value
  }

  /// The order of entries by their labels.
  package enum LabelOrder: RankedOrder {
    /// The label of an entry.
    package static func key(of entry: Entry) -> UInt128 { entry.label }
    /// Returns true if the first label is less than the second.
    package static func precedes(_ left: UInt128, _ right: UInt128) -> Bool { left < right }
  }

  /// The entries in order.
  package private(set) var entries: RankedTree<LabelOrder>
  /// The label of each member.
  package private(set) var labels: TreeDictionary<Value, UInt128>

  /// The gap between labels at either end: it leaves room for 2^63 more members there.
  private static var gap: UInt128 { 1 << 64 }
  /// The label of the first member inserted.
  private static var origin: UInt128 { 1 << 127 }

  /// Creates a list of the members of a sequence, in its order; if a member occurs twice, the first occurrence is kept.
  /// O(n).
  package init(_ members: some Sequence<Value>) {
    var entries: [Entry] = []
    entries.reserveCapacity(members.underestimatedCount)
    var labels: TreeDictionary<Value, UInt128> = [:]
    var label = Self.origin
    for member in members {
      if let earlier = labels.updateValue(label, forKey: member) {
        labels[member] = earlier
        continue
      }
      entries.append(Entry(label: label, member: member))
      label += Self.gap
    }
    self.entries = RankedTree(sorted: entries)
    self.labels = labels
  }

  /// The number of members. O(1).
  package var count: Int { entries.count }

  /// Returns true if the value is a member. O(log n): one hash and a few steps.
  package func contains(_ member: Value) -> Bool { labels[member] != nil }

  /// The position of a member; nil if the value is not a member. O(log n).
  package func index(of member: Value) -> Int? { labels[member].flatMap(entries.rank) }

  /// Inserts a member at a position from 0 to `count`; the value must not be a member yet. O(log n), amortized if no
  /// label is left between its neighbours. Returns the number of other members that got new labels.
  @discardableResult
  package mutating func insert(_ member: Value, at index: Int) -> Int {
    let left = index > 0 ? entries.element(at: index - 1).label : nil
    let right = index < count ? entries.element(at: index).label : nil
    var relabelled = 0
    let label: UInt128
    if let free = Self.label(between: left, and: right) {
      label = free
    } else {
      (label, relabelled) = makeRoom(at: index, beside: left ?? right ?? Self.origin)
    }
    entries.insert(Entry(label: label, member: member), at: index)
    labels[member] = label
    return relabelled
  }

  /// Removes and returns the member at a position. O(log n).
  package mutating func remove(at index: Int) -> Value {
    let member = entries.remove(at: index).member
    labels[member] = nil
    return member
  }

  /// A label between those of two neighbours, either of which may be missing; nil if none is left.
  private static func label(between left: UInt128?, and right: UInt128?) -> UInt128? {
    switch (left, right) {
    case (nil, nil): return origin
    case (let left?, nil):
      let (label, isTooMuch) = left.addingReportingOverflow(gap)
      return isTooMuch ? nil : label
    case (nil, let right?):
      let (label, isTooMuch) = right.subtractingReportingOverflow(gap)
      return isTooMuch ? nil : label
    case (let left?, let right?):
      let half = (right - left) / 2
      return half == 0 ? nil : left + half
    }
  }

  /// Spreads the labels around `label`, which belongs to a neighbour of the position, evenly, and leaves one free for a
  /// new member at the position. Returns the free label, and the number of labels changed.
  ///
  /// The neighbourhood is the smallest of 2^4, 2^8, 2^12 ... labels with enough room: one of 2^4k labels may hold 2^k
  /// members (Dietz and Sleator's tags, in the form of Bender and others, 2002). Afterwards each sixteenth of it holds
  /// at most an eighth of the members that it may hold, so that many insertions pay for the next time: each costs O(log
  /// n) new labels, amortized.
  private mutating func makeRoom(at index: Int, beside label: UInt128) -> (label: UInt128, relabelled: Int) {
    for level in 1..<UInt128.bitWidth / 4 {
      let width: UInt128 = 1 << (4 * level)
      let lowest = label & ~(width - 1)
      let ranks = entries.lowerBound(of: lowest)..<entries.upperBound(of: lowest + (width - 1))
      guard ranks.count < 1 << level else { continue }
      let gap = width / UInt128(ranks.count + 1)
      spread(ranks, from: lowest + gap / 2, by: gap, leavingOut: index)
      return (lowest + gap / 2 + gap * UInt128(index - ranks.lowerBound), ranks.count)
    }
    preconditionFailure("more than 2^31 members")
  }

  /// Gives the entries at `ranks` labels that are `gap` apart, and skips the label that belongs to the position `hole`.
  private mutating func spread(_ ranks: Range<Int>, from first: UInt128, by gap: UInt128, leavingOut hole: Int) {
    // Taken out, so that the dictionary has one owner and does not copy its nodes for each member.
    var labels = self.labels
    self.labels = [:]
    entries.update(ranks) { rank, entry in
      let step = rank - ranks.lowerBound + (rank < hole ? 0 : 1)
      entry.label = first + gap * UInt128(step)
      labels[entry.member] = entry.label
    }
    self.labels = labels
  }

  // MARK: Invariants

  /// Returns the inconsistencies of the tree, and between the tree and the dictionary; empty if there are none. For
  /// tests; O(n).
  package func checkInvariants() -> [String] {
    var faults = entries.checkInvariants()
    if labels.count != count { faults.append("\(labels.count) labels for \(count) members") }
    for entry in entries where labels[entry.member] != entry.label {
      faults.append("\(entry.member) has two labels")
    }
    return faults
  }
}
