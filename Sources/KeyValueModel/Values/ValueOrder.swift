package import Support

/// An order of all values, for sorting: null, then booleans, numbers, strings and references, arrays, objects.
///
/// False comes before true. Numbers are compared exactly, an integer with a double too. Strings and references are
/// compared by the bytes of their text, arrays element by element, objects by their JSON text with the members in the
/// order of their names. Values may be the same in this order that are not equal, as 1 and 1.0 are.
package enum ValueOrder: Hashable, Sendable {
  /// Strings by their bytes.
  case plain
  /// Strings that are dates of RFC 3339 by the moment they name, before all other strings. Only a value itself is taken
  /// for a date, not the elements of an array.
  case dates

  /// How one value stands to another. O(n) in what both have in common; objects are written out. Where many values are
  /// compared by date, keys save the reading of dates again and again.
  package func ordering(of left: Value, to right: Value) -> Ordering {
    key(of: left).ordering(to: key(of: right))
  }

  /// Whether `left` comes before `right`: what a sort wants.
  package func precedes(_ left: Value, _ right: Value) -> Bool { ordering(of: left, to: right) == .ascending }

  /// The value with what this order reads in it.
  package func key(of value: Value) -> Key {
    guard self == .dates, case .string(let text) = value else { return Key(value: value, instant: nil) }
    return Key(value: value, instant: RFC3339Instant(text))
  }

  /// A value with what its order reads in it, read once. Only keys of the same order are compared.
  package struct Key: Sendable {
    /// The value.
    package let value: Value
    /// The moment that the value names, in the order of dates.
    package let instant: RFC3339Instant?

    /// How this value stands to another.
    package func ordering(to other: Key) -> Ordering {
      // A reference is never a date: among strings and references, dates come first.
      switch (instant, other.instant) {
      case (let left?, let right?): Ordering(left, right)
      case (_?, nil) where other.value.sortRank == value.sortRank: .ascending
      case (nil, _?) where other.value.sortRank == value.sortRank: .descending
      default: value.plainOrdering(to: other.value)
      }
    }
  }
}

extension Value {
  /// The place of the value's kind.
  fileprivate var sortRank: Int {
    switch self {
    case .null: 0
    case .bool: 1
    case .integer, .number, .rounded: 2
    case .string, .reference: 3
    case .array, .members: 4
    case .object: 5
    }
  }

  fileprivate func plainOrdering(to other: Value) -> Ordering {
    switch (self, other) {
    case (.bool(let left), .bool(let right)): Ordering(left ? 1 : 0, right ? 1 : 0)
    case (.integer(let left), .integer(let right)): Ordering(left, right)
    case (.number(let left), .number(let right)): Ordering(left, right)
    case (.integer(let left), .number(let right)): NumberOrder.ordering(of: left, to: right)
    case (.number(let left), .integer(let right)): NumberOrder.ordering(of: left, to: right)
    case (.string(let left), .string(let right)): left.byteOrdering(to: right)
    case (.string(let left), .reference(let right)): left.byteOrdering(to: right.text)
    case (.reference(let left), .string(let right)): left.text.byteOrdering(to: right)
    case (.reference(let left), .reference(let right)): left.text.byteOrdering(to: right.text)
    case (.object, .object): Self.ordering(of: orderingText, to: other.orderingText)
    default: orderingOfListsOrKinds(to: other)
    }
  }

  private func orderingOfListsOrKinds(to other: Value) -> Ordering {
    guard let left = elements, let right = other.elements else { return Ordering(sortRank, other.sortRank) }
    for (leftElement, rightElement) in zip(left, right) {
      let ordering = leftElement.plainOrdering(to: rightElement)
      if ordering != .same { return ordering }
    }
    return Ordering(left.count, right.count)
  }

  private static func ordering(of left: [UInt8], to right: [UInt8]) -> Ordering {
    if left.lexicographicallyPrecedes(right) { return .ascending }
    return left == right ? .same : .descending
  }
}
