public import OrderedCollections

/// A JSON object: names with values, in the order in which they were written. Two are equal when they have the same
/// members, in whatever order (RFC 8259 §4).
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// Names and values in order.
  public var members: OrderedDictionary<String, Value>

  /// An object with these members.
  public init(_ members: OrderedDictionary<String, Value> = [:]) {
    self.members = members
  }

  /// An object with these members; of a name that comes twice, the last stays.
  public init(dictionaryLiteral elements: (String, Value)...) {
    members = OrderedDictionary(elements, uniquingKeysWith: { _, last in last })
  }

  /// The value of a member, nil where there is none; setting nil takes the member away.
  public subscript(name: String) -> Value? {
    get { members[name] }
    set { members[name] = newValue }
  }

  /// True when both have the same members, names compared byte for byte as values are.
  public static func == (left: JSONObject, right: JSONObject) -> Bool {
    guard left.members.count == right.members.count else { return false }
    return left.members.allSatisfy { name, value in
      guard let index = right.members.index(forKey: name) else { return false }
      let member = right.members.elements[index]
      return member.key.utf8.elementsEqual(name.utf8) && member.value == value
    }
  }

  /// Feeds what equality looks at, which is blind to the order.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(members.count)
    var sum = 0
    for (name, value) in members {
      var member = Hasher()
      member.combine(name)
      member.combine(value)
      sum &+= member.finalize()
    }
    hasher.combine(sum)
  }
}
