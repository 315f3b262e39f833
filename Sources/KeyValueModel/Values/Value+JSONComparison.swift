extension Value {
  /// Whether both are the same as JSON (RFC 6902 §4.6): numbers by what they are worth, exactly, however they are
  /// written; references as the strings that they are written as; objects whatever the order of their members.
  /// O(n).
  func isSameJSON(as other: Value) -> Bool {
    switch (self, other) {
    case (.null, .null): return true
    case (.bool(let left), .bool(let right)): return left == right
    case (.rounded(let number), _): return Value.number(number).isSameJSON(as: other)
    case (_, .rounded(let number)): return isSameJSON(as: .number(number))
    case (.integer, .integer), (.integer, .number), (.number, .integer), (.number, .number),
      (.string, .string), (.string, .reference), (.reference, .string), (.reference, .reference):
      return ValueOrder.plain.ordering(of: self, to: other) == .same
    case (.object(let left), .object(let right)):
      guard left.members.count == right.members.count else { return false }
      return left.members.allSatisfy { name, value in right[name].map(value.isSameJSON) ?? false }
    default:
      guard let left = elements, let right = other.elements, left.count == right.count else { return false }
      return zip(left, right).allSatisfy { $0.isSameJSON(as: $1) }
    }
  }

  /// How many values there are in this one, itself among them, and how many levels of arrays and objects. O(n).
  var extent: (nodes: Int, depth: Int) {
    switch self {
    case .array(let elements): Self.extent(around: elements)
    case .members(let list): Self.extent(around: list)
    case .object(let object): Self.extent(around: object.members.values)
    default: (1, 0)
    }
  }

  private static func extent(around values: some Sequence<Value>) -> (nodes: Int, depth: Int) {
    var (nodes, depth) = (1, 0)
    for value in values {
      let inner = value.extent
      nodes += inner.nodes
      depth = max(depth, inner.depth)
    }
    return (nodes, depth + 1)
  }
}
