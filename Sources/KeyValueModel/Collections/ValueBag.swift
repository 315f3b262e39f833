/// Values in order, each as often as it was inserted: what a smallest and a greatest value are read from while values
/// come and go.
///
/// The order is that of `ValueOrder`. Equal values are one, counted; values that are the same in the order but not
/// equal, as 1 and 1.0 are, or two spellings of a moment, are held apart, an integer before a double. Persistent: a
/// copy costs O(1).
package struct ValueBag: Sendable {
  /// The order of the values.
  package let order: ValueOrder
  /// How many values there are, each as often as it is there. O(1).
  package private(set) var count = 0
  private var entries = RankedTree<EntryOrder>()

  private struct Entry: Sendable {
    let key: ValueOrder.Key
    var count: Int
  }

  private enum EntryOrder: RankedOrder {
    static func key(of entry: Entry) -> ValueOrder.Key { entry.key }

    static func precedes(_ left: ValueOrder.Key, _ right: ValueOrder.Key) -> Bool {
      // Of two doubles, which are the commonest by far, both orders say the same.
      if case .number = left.value, case .number = right.value { return MemberOrder.precedes(left.value, right.value) }
      return switch left.ordering(to: right) {
      case .ascending: true
      case .same: MemberOrder.precedes(left.value, right.value)
      case .descending: false
      }
    }
  }

  /// An empty bag.
  package init(order: ValueOrder = .plain) {
    self.order = order
  }

  /// Whether there is no value. O(1).
  package var isEmpty: Bool { count == 0 }

  /// How many values there are that differ. O(1).
  package var distinctCount: Int { entries.count }

  /// The value that no other precedes, nil where there is none. O(log n).
  package var first: Value? { entries.first?.key.value }

  /// The value that precedes no other, nil where there is none. O(log n).
  package var last: Value? { entries.last?.key.value }

  /// How often a value is there. O(log n).
  package func count(of value: Value) -> Int { entries.element(for: order.key(of: value))?.count ?? 0 }

  /// Inserts a value once more. O(log n).
  package mutating func insert(_ value: Value) {
    let key = order.key(of: value)
    count += 1
    let (rank, isFound) = entries.place(of: key)
    if isFound {
      entries.update(at: rank) { $0.count += 1 }
    } else {
      entries.insert(Entry(key: key, count: 1), at: rank)
    }
  }

  /// Takes a value away once; false where it is not there, and then nothing changes. O(log n).
  @discardableResult
  package mutating func remove(_ value: Value) -> Bool {
    guard let rank = entries.rank(of: order.key(of: value)) else { return false }
    count -= 1
    var left = 0
    entries.update(at: rank) { entry in
      entry.count -= 1
      left = entry.count
    }
    if left == 0 { entries.remove(at: rank) }
    return true
  }

  /// What is wrong with the bag. Empty where all is well. For tests; O(n).
  package func checkInvariants() -> [String] {
    var faults = entries.checkInvariants()
    let sum = entries.reduce(0) { $0 + $1.count }
    if sum != count { faults.append("the bag says \(count), its entries \(sum)") }
    for entry in entries where entry.count < 1 { faults.append("\(entry.key.value) is there \(entry.count) times") }
    return faults
  }
}
