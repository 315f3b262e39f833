import CEL

/// What the members of one collection of an object are folded into: a collection operator with its key path, or a
/// collection function of an expression. Names the work, not the object.
public struct CollectionFold: Hashable, Sendable {
  /// How values become one.
  enum Function: Hashable {
    /// How many there are.
    case count
    /// Their sum.
    case sum
    /// Their sum divided by their number.
    case average
    /// The least.
    case minimum
    /// The greatest.
    case maximum
    /// Whether all are true.
    case all
    /// Whether one is true.
    case exists
    /// Whether exactly one is true.
    case existsOne
  }

  /// What of a member is folded.
  enum Element: Hashable {
    /// The value for these keys; of none, the member itself.
    case keys([Int])
    /// What an expression makes of it.
    case expression(MemberExpression)
  }

  /// The index of the collection's key in its entity.
  package let key: Int
  fileprivate let function: Function
  let element: Element
  /// Whether the values are dates, which compare by instant.
  fileprivate let isOverDates: Bool
  /// Whether the values are numbers that need not be whole: a sum of none is then the number 0, and no integer.
  fileprivate let isOverNumbers: Bool

  /// Whether a sum of integers that is over 64 bits is an error, as expressions have it.
  fileprivate var isStrict: Bool {
    if case .expression = element { true } else { false }
  }

  /// The key of the members whose values are folded as they are, where it is one; nil for a longer path, for an
  /// expression and for members that are folded themselves.
  package var attribute: Int? {
    if case .keys(let keys) = element, keys.count == 1 { keys[0] } else { nil }
  }

  /// The fold of an operator over the collection that has this key; nil for operators that give lists, and for
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

  /// The fold of a collection function.
  init(_ function: Function, ofKey key: Int, element: MemberExpression) {
    self.key = key
    self.function = function
    self.element = .expression(element)
    isOverDates = false
    isOverNumbers = false
  }
}

/// What a collection folds into.
public enum FoldedValue: Hashable, Sendable {
  /// A value.
  case value(Value)
  /// An expression failed for some member, or the result fits no type.
  case failure(String)
}

/// A fold over members that come, go and change: each costs the same however many there are, or for the least and the
/// greatest a logarithm of it. The order in which they came has no influence.
package struct RunningFold: Sendable {
  /// What one member adds.
  package enum Contribution: Hashable, Sendable {
    /// Nothing: a filter left it out.
    case none
    /// A value, null included.
    case value(Value)
    /// The expression failed.
    case failure(String)
  }

  private let function: CollectionFold.Function
  /// Whether an integer sum over 64 bits is an error, and no number.
  private let isStrict: Bool
  /// Whether values are numbers that need not be whole: their sum is no integer.
  private let isOverNumbers: Bool
  /// How many members add something.
  private var count = 0
  private var failures = 0
  /// The last failure that came, for the message.
  private var failure = ""
  private var sum = DecimalSum()
  /// How many of the values are not whole numbers of 64 bits.
  private var fractions = 0
  private var bag: ValueBag
  private var truths = 0

  /// A fold over no members.
  package init(_ fold: CollectionFold) {
    self.init(fold.function, isOverDates: fold.isOverDates, isOverNumbers: fold.isOverNumbers, isStrict: fold.isStrict)
  }

  /// A fold of values over no members.
  init(_ function: CollectionFold.Function, isOverDates: Bool, isOverNumbers: Bool, isStrict: Bool = false) {
    self.function = function
    self.isStrict = isStrict
    self.isOverNumbers = isOverNumbers
    bag = ValueBag(order: isOverDates ? .dates : .plain)
  }

  /// Takes a member in.
  package mutating func insert(_ contribution: Contribution) {
    if case .failure(let message) = contribution { failure = message }
    note(contribution, 1)
  }

  /// Takes out a member that was taken in with the same contribution.
  package mutating func remove(_ contribution: Contribution) { note(contribution, -1) }

  /// Counts a contribution as one more or, with -1, as one less.
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
        // Which of two zeros came first must not show.
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

  /// What the members fold into.
  package var value: FoldedValue {
    // One true member decides `exists`, and one false member `all`, whatever becomes of the others (CEL language
    // definition, Macros).
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

  /// Whole as long as every value is, and may be.
  private var total: FoldedValue {
    if fractions == 0, !isOverNumbers {
      if let integer = sum.integerSum { return .value(.integer(integer)) }
      if isStrict { return .failure("the sum is over 64 bits") }
    }
    let total = sum.sum
    return total.isFinite ? .value(.number(total)) : .failure("the sum is over the range of a double")
  }
}

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
