package import HashTreeCollections

/// The members of a long ordered list: each has a label, and the labels ascend from place to place, so that both the
/// member at a place and the place of a member are found in O(log n).
///
/// A member that comes first or last gets a label a wide gap outward, one in between the label in the middle. Where two
/// neighbours have no label between them, those around them get new labels; `makeRoom` says which.
package struct LabelledMembers: Sendable {
  /// A member with its label.
  package struct Entry: Sendable {
    /// What the place of the member is found by.
    package var label: UInt128
    /// The member.
    package let member: Value
  }

  /// Entries by their labels.
  package enum LabelOrder: RankedOrder {
    /// The label of an entry.
    package static func key(of entry: Entry) -> UInt128 { entry.label }
    /// Whether a label is less than another one.
    package static func precedes(_ left: UInt128, _ right: UInt128) -> Bool { left < right }
  }

  /// The entries in order.
  package private(set) var entries: RankedTree<LabelOrder>
  /// The label of each member.
  package private(set) var labels: TreeDictionary<Value, UInt128>

  /// Between labels that are not squeezed in between two: leaves room for 2^63 more at either end.
  private static var gap: UInt128 { 1 << 64 }
  /// The label of the first of all members.
  private static var origin: UInt128 { 1 << 127 }

  /// The members of a sequence, in its order; of one that comes twice the first stays. O(n).
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

  /// How many members there are. O(1).
  package var count: Int { entries.count }

  /// Whether this is a member. O(log n), which is one hash and few steps.
  package func contains(_ member: Value) -> Bool { labels[member] != nil }

  /// The place of a member, nil where it is none. O(log n).
  package func index(of member: Value) -> Int? { labels[member].flatMap(entries.rank) }

  /// Inserts a member at a place from 0 to `count`; it must not be one already. O(log n), amortised where there is no
  /// label left between its neighbours. Gives how many others got new labels for it.
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

  /// Takes the member at a place away. O(log n).
  package mutating func remove(at index: Int) -> Value {
    let member = entries.remove(at: index).member
    labels[member] = nil
    return member
  }

  /// A label that fits between two neighbours, either of which may be missing; nil where there is none.
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

  /// Spreads the labels around `label`, which belongs to a neighbour of the place, evenly, and leaves one free for a
  /// new member at the place. Gives that one, and how many others were changed.
  ///
  /// The neighbourhood is the smallest of 2^4, 2^8, 2^12 ... labels that has room enough: one of 2^4k labels may hold
  /// 2^k members (Dietz and Sleator's tags, in the form of Bender and others, 2002). After that each sixteenth of it
  /// holds at most an eighth of what it may, so that many insertions pay for the next time: O(log n) new labels for
  /// each of them, amortised.
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

  /// Gives the entries at `ranks` labels `gap` apart, and leaves the one that falls to the place `hole` out.
  private mutating func spread(_ ranks: Range<Int>, from first: UInt128, by gap: UInt128, leavingOut hole: Int) {
    // Taken out, so that no other copy makes the dictionary copy its nodes for each member.
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

  /// What is wrong with the tree, or between the tree and the dictionary. Empty where all is well. For tests; O(n).
  package func checkInvariants() -> [String] {
    var faults = entries.checkInvariants()
    if labels.count != count { faults.append("\(labels.count) labels for \(count) members") }
    for entry in entries where labels[entry.member] != entry.label {
      faults.append("\(entry.member) has two labels")
    }
    return faults
  }
}
