import CEL

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
