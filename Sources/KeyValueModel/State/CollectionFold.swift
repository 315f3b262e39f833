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
  let function: Function
  let element: Element
  /// Whether the values are dates, which compare by instant.
  let isOverDates: Bool
  /// Whether the values are numbers that need not be whole: a sum of none is then the number 0, and no integer.
  let isOverNumbers: Bool

  /// Whether a sum of integers that is over 64 bits is an error, as expressions have it.
  var isStrict: Bool {
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
