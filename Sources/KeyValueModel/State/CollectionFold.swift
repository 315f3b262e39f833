import CEL

/// A fold of the members of one collection of an object: a collection operator with its key path, or a collection
/// function of an expression. Describes the computation, without the object.
public struct CollectionFold: Hashable, Sendable {
  /// The function that combines the values.
  enum Function: Hashable {
    /// The number of values.
    case count
    /// Their sum.
    case sum
    /// Their sum divided by their number.
    case average
    /// The least value.
    case minimum
    /// The greatest value.
    case maximum
    /// True if all are true.
    case all
    /// True if at least one is true.
    case exists
    /// True if exactly one is true.
    case existsOne
  }

  /// The part of a member that is folded.
  enum Element: Hashable {
    /// The value at these keys; with no keys, the member itself.
    case keys([Int])
    /// The value of an expression for the member.
    case expression(MemberExpression)
  }

  /// The index of the collection's key in its entity.
  package let key: Int
  fileprivate let function: Function
  let element: Element
  /// True if the values are dates, which compare by instant.
  fileprivate let isOverDates: Bool
  /// True if the values are numbers that need not be whole: the sum of none is then the number 0, not an integer.
  fileprivate let isOverNumbers: Bool

  /// True if a sum of integers that exceeds 64 bits is an error, as in expressions.
  fileprivate var isStrict: Bool {
    if case .expression = element { true } else { false }
  }

  /// The key of the members whose values are folded unchanged; nil for a longer path, for an expression and for members
  /// that are folded themselves.
  package var attribute: Int? {
    if case .keys(let keys) = element, keys.count == 1 { keys[0] } else { nil }
  }

  /// Creates the fold of an operator over the collection at this key; nil for operators that return lists, and for
  /// `@count`, which needs none.
  package init?(_ operation: CollectionOperation, ofKey key: Int) {
    switch operation.function {
    case .sum: function = .sum
    case .average: function = .average
    case .minimum: function = .minimum
    case .maximum: function = .maximum
    case .count, .unionOfObjects, .distinctUnionOfObjects, .unionOfArrays, .distinctUnionOfArrays: return nil
    }
    self.key = key
    element = .keys(operation.memberKeys)
    isOverDates = operation.isOverDates
    isOverNumbers = operation.isOverNumbers
  }

  /// Creates the fold of a collection function.
  init(_ function: Function, ofKey key: Int, element: MemberExpression) {
    self.key = key
    self.function = function
    self.element = .expression(element)
    isOverDates = false
    isOverNumbers = false
  }
}

/// The result of a fold.
public enum FoldedValue: Hashable, Sendable {
  /// A value.
  case value(Value)
  /// An expression failed for a member, or the result fits no type.
  case failure(String)
}

/// A fold that is kept up to date while members come, go and change. Each change costs O(1), or O(log n) for the
/// minimum and the maximum. The order of the changes has no influence.
package struct RunningFold: Sendable {
  /// The contribution of one member.
  package enum Contribution: Hashable, Sendable {
    /// No contribution: a filter left the member out.
    case none
    /// A value, null included.
    case value(Value)
    /// The expression failed.
    case failure(String)
  }

  private let function: CollectionFold.Function
  /// True if an integer sum that exceeds 64 bits is an error; otherwise it becomes a number.
  private let isStrict: Bool
  /// True if values are numbers that need not be whole: their sum is then not an integer.
  private let isOverNumbers: Bool
  /// The number of members that contribute a value.
  private var count = 0
  private var failures = 0
  /// The most recent failure, for the message.
  private var failure = ""
  private var sum = DecimalSum()
  /// The number of values that are not integers of 64 bits.
  private var fractions = 0
  private var bag: ValueBag
  private var truths = 0

  /// Creates a fold over no members.
  package init(_ fold: CollectionFold) {
    self.init(fold.function, isOverDates: fold.isOverDates, isOverNumbers: fold.isOverNumbers, isStrict: fold.isStrict)
  }

  /// Creates a fold of values over no members.
  init(_ function: CollectionFold.Function, isOverDates: Bool, isOverNumbers: Bool, isStrict: Bool = false) {
    self.function = function
    self.isStrict = isStrict
    self.isOverNumbers = isOverNumbers
    bag = ValueBag(order: isOverDates ? .dates : .plain)
  }

  /// Adds the contribution of a member.
  package mutating func insert(_ contribution: Contribution) {
    if case .failure(let message) = contribution { failure = message }
    note(contribution, 1)
  }

  /// Removes a member that was inserted with the same contribution.
  package mutating func remove(_ contribution: Contribution) { note(contribution, -1) }

  /// Counts a contribution once more or, if `times` is -1, once less.
  private mutating func note(_ contribution: Contribution, _ times: Int) {
    switch contribution {
    case .none: break
    case .failure: failures += times
    case .value(let value):
      count += times
      switch function {
      case .count: break
      case .sum, .average: add(value, times)
      case .minimum, .maximum:
        if value.isNull { break }
        // The result must not depend on which of two zeros came first.
        let value = value.withoutSignOfZero
        if times > 0 { bag.insert(value) } else { bag.remove(value) }
      case .all, .exists, .existsOne: if value == .bool(true) { truths += times }
      }
    }
  }

  private mutating func add(_ value: Value, _ times: Int) {
    switch value {
    case .integer(let integer): times > 0 ? sum.add(integer) : sum.remove(integer)
    case .number(let number):
      times > 0 ? sum.add(number) : sum.remove(number)
      fractions += times
    default: break
    }
  }

  // MARK: The result

  /// The result of the fold.
  package var value: FoldedValue {
    // One true member decides `exists`, and one false member `all`, even if the expression fails for others (CEL
    // language definition, Macros).
    if function == .exists, truths > 0 { return .value(.bool(true)) }
    if function == .all, truths < count { return .value(.bool(false)) }
    guard failures == 0 else { return .failure(failure) }
    switch function {
    case .count: return .value(.integer(Int64(count)))
    case .sum: return total
    case .average: return .value(sum.average(count: count).map(Value.number) ?? .null)
    case .minimum: return .value(bag.first ?? .null)
    case .maximum: return .value(bag.last ?? .null)
    case .all: return .value(.bool(true))
    case .exists: return .value(.bool(false))
    case .existsOne: return .value(.bool(truths == 1))
    }
  }

  /// The sum: an integer as long as every value is one and the type allows it.
  private var total: FoldedValue {
    if fractions == 0, !isOverNumbers {
      if let integer = sum.integerSum { return .value(.integer(integer)) }
      if isStrict { return .failure("the sum exceeds 64 bits") }
    }
    let total = sum.sum
    return total.isFinite ? .value(.number(total)) : .failure("the sum exceeds the range of a double")
  }
}

/// A sorted multiset of values, from which the least and the greatest value can be read while values come and go.
///
/// The order is that of `ValueOrder`. Equal values share an entry with a count. Values that have the same place in the
/// order without being equal, such as 1 and 1.0, or two spellings of a moment, have separate entries, an integer before
/// a double. Persistent: a copy costs O(1).
package struct ValueBag: Sendable {
  /// The order of the values.
  package let order: ValueOrder
  /// The number of values, repetitions included. O(1).
  package private(set) var count = 0
  private var entries = RankedTree<EntryOrder>()

  private struct Entry: Sendable {
    let key: ValueOrder.Key
    var count: Int
  }

  private enum EntryOrder: RankedOrder {
    static func key(of entry: Entry) -> ValueOrder.Key { entry.key }

    static func precedes(_ left: ValueOrder.Key, _ right: ValueOrder.Key) -> Bool {
      // For two doubles, by far the most frequent case, both orders agree.
      if case .number = left.value, case .number = right.value { return MemberOrder.precedes(left.value, right.value) }
      return switch left.ordering(to: right) {
      case .ascending: true
      case .same: MemberOrder.precedes(left.value, right.value)
      case .descending: false
      }
    }
  }

  /// Creates an empty bag.
  package init(order: ValueOrder = .plain) {
    self.order = order
  }

  /// True if there is no value. O(1).
  package var isEmpty: Bool { count == 0 }

  /// The number of distinct values. O(1).
  package var distinctCount: Int { entries.count }

  /// The least value, or nil if there is none. O(log n).
  package var first: Value? { entries.first?.key.value }

  /// The greatest value, or nil if there is none. O(log n).
  package var last: Value? { entries.last?.key.value }

  /// Returns the number of occurrences of a value. O(log n).
  package func count(of value: Value) -> Int { entries.element(for: order.key(of: value))?.count ?? 0 }

  /// Inserts an occurrence of a value. O(log n).
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

  /// Removes an occurrence of a value. Returns false, and changes nothing, if there is none. O(log n).
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

  /// Returns a description of each violated invariant; empty if there is none. For tests; O(n).
  package func checkInvariants() -> [String] {
    var faults = entries.checkInvariants()
    let sum = entries.reduce(0) { $0 + $1.count }
    if sum != count { faults.append("the bag says \(count), its entries \(sum)") }
    for entry in entries where entry.count < 1 { faults.append("\(entry.key.value) is there \(entry.count) times") }
    return faults
  }
}
