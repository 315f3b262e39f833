import CEL
package import Support

/// An order of all values, for sorting: null, then booleans, numbers, strings and references, arrays, objects.
///
/// False comes before true. Numbers are compared exactly, also an integer with a double. Strings and references are
/// compared by the bytes of their text, arrays element by element, objects by their JSON text with the members sorted
/// by name. Unequal values, such as 1 and 1.0, may be the same in this order.
package enum ValueOrder: Hashable, Sendable {
  /// Compares strings by their bytes.
  case plain
  /// Compares strings that are dates of RFC 3339 by instant, and sorts them before all other strings. Only the value
  /// itself is treated as a date, not the elements of an array.
  case dates

  /// Returns the ordering of two values. O(n) in the length that both have in common; objects are written out. To
  /// compare many values by date, use keys, which parse each date only once.
  package func ordering(of left: Value, to right: Value) -> Ordering {
    key(of: left).ordering(to: key(of: right))
  }

  /// Returns true if `left` comes before `right`, as a sort requires.
  package func precedes(_ left: Value, _ right: Value) -> Bool { ordering(of: left, to: right) == .ascending }

  /// Returns the value with the date that this order reads in it.
  package func key(of value: Value) -> Key {
    guard self == .dates, case .string(let text) = value else { return Key(value: value, instant: nil) }
    return Key(value: value, instant: RFC3339Instant(text))
  }

  /// A value with the date that its order reads in it, parsed once. Compare only keys of the same order.
  package struct Key: Sendable {
    /// The value.
    package let value: Value
    /// The instant of the value in the order `dates`; nil if it is not a date.
    package let instant: RFC3339Instant?

    /// Returns the ordering of this value and another one.
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
  /// The rank of the value's kind.
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

/// The order of the members of an unordered to-many: by kind, then references and strings by their bytes, numbers
/// numerically with -0.0 before 0.0, everything else by JSON text. Two values are the same in this order if and only if
/// they are equal.
enum MemberOrder: RankedOrder {
  typealias Element = Value

  /// Returns true if `left` comes before `right`. O(n) in the length that both have in common; arrays and objects are
  /// written out.
  static func precedes(_ left: Value, _ right: Value) -> Bool {
    switch (left, right) {
    case (.reference(let left), .reference(let right)): left.text.byteOrdering(to: right.text) == .ascending
    case (.string(let left), .string(let right)): left.byteOrdering(to: right) == .ascending
    case (.integer(let left), .integer(let right)): left < right
    case (.number(let left), .number(let right)):
      left < right || left == right && left.sign == .minus && right.sign == .plus
    // If both are the same number, the integer comes first.
    case (.integer(let left), .number(let right)): NumberOrder.ordering(of: left, to: right) != .descending
    case (.number(let left), .integer(let right)): NumberOrder.ordering(of: left, to: right) == .ascending
    case (.bool(let left), .bool(let right)): !left && right
    default: precedesByKindOrText(left, right)
    }
  }

  private static func precedesByKindOrText(_ left: Value, _ right: Value) -> Bool {
    let leftKind = kind(of: left)
    let rightKind = kind(of: right)
    guard leftKind == rightKind else { return leftKind < rightKind }
    return left.orderingText.lexicographicallyPrecedes(right.orderingText)
  }

  private static func kind(of value: Value) -> Int {
    switch value {
    case .null: 0
    case .bool: 1
    case .integer, .number, .rounded: 2
    case .string: 3
    case .reference: 4
    case .array, .members: 5
    case .object: 6
    }
  }
}

extension Value {
  /// The JSON text by which arrays and objects are ordered: equal values have the same, unlike the text that is sent.
  /// Members of objects are sorted by name, and a zero has no sign.
  ///
  /// The text is followed by a byte for each number and string that distinguishes an integer from a double, 0.0 from
  /// -0.0, and a string from a reference, so that two values have the same bytes only if they are equal. O(n), plus the
  /// sorting of names.
  fileprivate var orderingText: [UInt8] {
    var text: [UInt8] = []
    var kinds: [UInt8] = []
    appendOrderingText(to: &text, kinds: &kinds)
    // No JSON text has this byte, and no text is the beginning of another one, so the kinds are compared last.
    text.append(0)
    return text + kinds
  }

  private func appendOrderingText(to text: inout [UInt8], kinds: inout [UInt8]) {
    switch self {
    case .null, .bool: appendJSON(to: &text)
    case .integer, .string:
      appendJSON(to: &text)
      kinds.append(0)
    case .reference:
      appendJSON(to: &text)
      kinds.append(1)
    case .number(let number), .rounded(let number):
      Value.number(number == 0 ? 0 : number).appendJSON(to: &text)
      kinds.append(number == 0 && number.sign == .minus ? 2 : 1)
    case .array(let elements): Self.appendOrderingText(of: elements, to: &text, kinds: &kinds)
    case .members(let list): Self.appendOrderingText(of: list, to: &text, kinds: &kinds)
    case .object(let object):
      var separator = UInt8(ascii: "{")
      if object.members.isEmpty { text.append(separator) }
      for (name, value) in object.members.sorted(by: { $0.key.byteOrdering(to: $1.key) == .ascending }) {
        text.append(separator)
        separator = UInt8(ascii: ",")
        text.appendJSONString(name)
        text.append(UInt8(ascii: ":"))
        value.appendOrderingText(to: &text, kinds: &kinds)
      }
      text.append(UInt8(ascii: "}"))
    }
  }

  private static func appendOrderingText(
    of elements: some Sequence<Value>, to text: inout [UInt8], kinds: inout [UInt8]
  ) {
    text.append(UInt8(ascii: "["))
    var isFirst = true
    for element in elements {
      if !isFirst { text.append(UInt8(ascii: ",")) }
      isFirst = false
      element.appendOrderingText(to: &text, kinds: &kinds)
    }
    text.append(UInt8(ascii: "]"))
  }
}

/// The exact order of integers and doubles: no integer is rounded to a double.
private enum NumberOrder {
  /// Returns the ordering of an integer and a double.
  static func ordering(of integer: Int64, to number: Double) -> Ordering {
    // Between these bounds, which are doubles, the whole part of a double is an Int64.
    if number >= 0x1p63 { return .ascending }
    guard number >= -0x1p63 else { return .descending }
    let whole = Int64(number)
    guard integer == whole else { return Ordering(integer, whole) }
    return Ordering(0, number - Double(whole))
  }

  /// Returns the ordering of a double and an integer.
  static func ordering(of number: Double, to integer: Int64) -> Ordering {
    switch ordering(of: integer, to: number) {
    case .ascending: .descending
    case .same: .same
    case .descending: .ascending
    }
  }
}

/// The result of a comparison: the position of the first of two values relative to the second.
package enum Ordering: Sendable {
  /// The first comes first.
  case ascending
  /// Neither comes before the other.
  case same
  /// The second comes first.
  case descending

  /// Creates the ordering of two comparable values.
  @inline(__always)
  init<Item: Comparable>(_ left: Item, _ right: Item) {
    self = left < right ? .ascending : right < left ? .descending : .same
  }
}

extension String {
  /// Returns the ordering of the UTF-8 bytes of two strings, unlike Swift's own `<`, which treats canonically
  /// equivalent strings as equal. O(n) in the length that both share.
  func byteOrdering(to other: String) -> Ordering { Ordering(compareBytes(other), 0) }
}
