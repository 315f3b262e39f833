import CEL
import OrderedCollections

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

/// The members of a JSON object: names with values, in the order in which they were written. Names are compared code
/// point by code point (RFC 8259 §8.3), so that the two ways to write `é` are two names.
public struct JSONMembers: Sendable {
  private var storage: OrderedDictionary<ExactText, Value> = [:]

  /// No members.
  public init() {}

  /// The value of a member, nil where there is none. Setting a new one puts it last; setting nil takes the member away.
  public subscript(name: String) -> Value? {
    get { storage[ExactText(name)] }
    set { storage[ExactText(name)] = newValue }
  }

  /// The names in order.
  public var keys: some RandomAccessCollection<String> { storage.keys.lazy.map(\.text) }

  /// The values in order.
  public var values: some RandomAccessCollection<Value> { storage.values }

  /// Adds a member behind the others. False where there is one of this name, whose value is replaced.
  mutating func append(_ name: String, _ value: Value) -> Bool {
    storage.updateValue(value, forKey: ExactText(name)) == nil
  }

  /// Changes the value of a member in place. False where there is no such member.
  mutating func change<Failure: Error>(
    _ name: String, _ change: (inout Value) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    guard let index = storage.index(forKey: ExactText(name)) else { return false }
    try change(&storage.values[index])
    return true
  }

  /// Adds the members of another object; `combine` gives the value of a member that both have.
  public mutating func merge(_ other: JSONMembers, uniquingKeysWith combine: (Value, Value) -> Value) {
    storage.merge(other.storage.elements.lazy.map { ($0.key, $0.value) }, uniquingKeysWith: combine)
  }
}

extension JSONMembers: RandomAccessCollection {
  /// The place of the first member.
  public var startIndex: Int { 0 }
  /// The place behind the last member.
  public var endIndex: Int { storage.count }
  /// The member at a place.
  public subscript(index: Int) -> (key: String, value: Value) {
    let member = storage.elements[index]
    return (member.key.text, member.value)
  }
}

extension JSONMembers: Hashable {
  /// True when both have the same members, in whatever order.
  public static func == (left: JSONMembers, right: JSONMembers) -> Bool {
    left.count == right.count && left.storage.allSatisfy { right.storage[$0.key] == $0.value }
  }

  /// Feeds what equality looks at, which is blind to the order.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(count)
    var sum = 0
    for (name, value) in storage {
      var member = Hasher()
      member.combine(name)
      member.combine(value)
      sum &+= member.finalize()
    }
    hasher.combine(sum)
  }
}
