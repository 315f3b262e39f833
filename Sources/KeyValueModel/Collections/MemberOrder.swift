/// The order in which an unordered to-many keeps its members: by kind, then references and strings by their bytes,
/// numbers numerically, -0.0 before 0.0, everything else by JSON text. Two values are the same in it just when they are
/// equal.
enum MemberOrder: RankedOrder {
  typealias Element = Value

  /// Whether `left` comes before `right`. O(n) in what both have in common; arrays and objects are written out.
  static func precedes(_ left: Value, _ right: Value) -> Bool {
    switch (left, right) {
    case (.reference(let left), .reference(let right)): left.text.byteOrdering(to: right.text) == .ascending
    case (.string(let left), .string(let right)): left.byteOrdering(to: right) == .ascending
    case (.integer(let left), .integer(let right)): left < right
    case (.number(let left), .number(let right)):
      left < right || left == right && left.sign == .minus && right.sign == .plus
    // Where they are the same number, the integer comes first.
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
