/// A JSON object: names with values, in the order in which they were written. Two are equal when they have the same
/// members, in whatever order (RFC 8259 §4).
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// Names and values in order.
  public var members: JSONMembers

  /// An object with these members.
  public init(_ members: JSONMembers = JSONMembers()) { self.members = members }

  /// An object with these members; of a name that comes twice, the last stays.
  public init(dictionaryLiteral elements: (String, Value)...) {
    members = JSONMembers()
    for (name, value) in elements { members[name] = value }
  }

  /// The value of a member, nil where there is none; setting nil takes the member away.
  public subscript(name: String) -> Value? {
    get { members[name] }
    set { members[name] = newValue }
  }
}
